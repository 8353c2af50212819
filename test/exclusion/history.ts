/** Reads the workers' journals from the witness, and the remaining keys from the lock server. */
import type { Redis } from "ioredis";
import type { Counter, Sighting } from "./checker.js";
import { MS, type Outage, type Place, type Section } from "./sections.js";

const PAGE = 20_000;

/** The sections of all processes. */
export async function readSections(witness: Redis): Promise<Section[]> {
  const sections: Section[] = [];
  for (const key of await witness.keys("journal:*")) {
    const process = key.slice("journal:".length);
    const entries = new Map<string, Section>();
    for (let from = 0; ; from += PAGE) {
      const lines = await witness.lrange(key, from, from + PAGE - 1);
      for (const line of lines) readLine(line, process, entries);
      if (lines.length < PAGE) break;
    }
    for (const section of entries.values()) sections.push(section);
  }
  return sections;
}

/** When each process stood still for a poll or longer. */
export async function readStalls(witness: Redis): Promise<Map<string, Outage[]>> {
  const stalls = new Map<string, Outage[]>();
  for (const key of await witness.keys("stalls:*")) {
    const lines = await witness.lrange(key, 0, -1);
    const outages = lines.map((line) => {
      const [from = "", until = ""] = line.split(" ");
      return { from: BigInt(from), until: BigInt(until) };
    });
    stalls.set(key.slice("stalls:".length), outages);
  }
  return stalls;
}

/** The most nanoseconds by which a timer of any process was late. */
export async function readLag(witness: Redis): Promise<bigint> {
  const keys = await witness.keys("lag:*");
  const lags = await Promise.all(keys.map(async (key) => BigInt((await witness.get(key)) ?? 0)));
  return lags.reduce((a, b) => (a > b ? a : b), 0n);
}

function readLine(line: string, process: string, entries: Map<string, Section>): void {
  const [kind, id = "", ...words] = line.split(" ");
  if (kind === "E") {
    entries.set(id, readEntry(id, process, words));
    return;
  }
  const entry = entries.get(id);
  if (!entry) throw new Error(`the journal of ${process} leaves what it never entered: ${line}`);
  const [at = "", torn] = words;
  const leftAt = BigInt(at);
  entries.set(id, { ...entry, leftAt, lostAt: kind === "L" ? undefined : leftAt, torn: torn === "torn" });
}

function readEntry(id: string, process: string, words: readonly string[]): Section {
  const [lock = "", askedAt = "", enteredAt = "", lease, deadline = "-", owner = "", mode, ...rest] = words;
  const [token = "-", place = "-", found = "-"] = rest;
  return {
    lock,
    id,
    process,
    owner,
    shared: mode === "shared",
    askedAt: BigInt(askedAt),
    place: readPlace(place),
    enteredAt: BigInt(enteredAt),
    deadline: deadline === "-" ? undefined : BigInt(deadline),
    leftAt: undefined,
    lostAt: undefined,
    lease: Number(lease),
    token: token === "-" ? undefined : BigInt(token),
    intruded: found === "-" ? [] : found.split(","),
    torn: false,
  };
}

function readPlace(word: string): Place | undefined {
  const [before, at = ""] = word.split("@");
  return before === "all" || before === "readers" ? { at: BigInt(at), before } : undefined;
}

export async function readCounters(witness: Redis): Promise<Counter[]> {
  const keys = await witness.keys("writes:*");
  return Promise.all(
    keys.map(async (key) => {
      const lock = key.slice("writes:".length);
      const [writes, value] = await witness.mget(key, `counter:${lock}`);
      return { lock, value: Number(value), writes: Number(writes) };
    }),
  );
}

/** Keys that stay after a release: tombstones, each with a TTL, and the counter of tokens. */
const LASTING = /^(redisson_unlock_latch|holdfast_over|redisson_lock_token):/;

/** The server's keys of locks, and of calls that wait for them. */
export async function keysOf(server: Redis, lock: RegExp): Promise<{ lock: string; key: string }[]> {
  return (await server.keys("*")).flatMap((key) => {
    const name = lock.exec(key)?.[0];
    return name === undefined || LASTING.test(key) ? [] : [{ lock: name, key }];
  });
}

/** The present state of these keys on the server. */
export async function sight(
  server: Redis,
  keys: readonly { lock: string; key: string }[],
): Promise<Sighting[]> {
  return Promise.all(
    keys.map(async ({ lock, key }) => {
      const ttl = await server.pttl(key);
      return { lock, ...(key === lock ? {} : { key }), at: process.hrtime.bigint(), ttl };
    }),
  );
}

/** Until when the server keeps locks for these clients, whose processes are dead. */
export async function leftBy(
  clients: readonly string[],
  server: Redis,
  keys: readonly { lock: string; key: string }[],
): Promise<{ lock: string; until: bigint }[]> {
  const locks = keys.filter(({ lock, key }) => key === lock);
  const left = await Promise.all(
    locks.map(async ({ lock }) => {
      const [[, owners], [, ttl]] = (await server.multi().hkeys(lock).pttl(lock).exec()) as [
        [unknown, string[]],
        [unknown, number],
      ];
      const isTheirs = owners.some((owner) => clients.some((client) => owner.startsWith(client)));
      return isTheirs ? [{ lock, until: process.hrtime.bigint() + BigInt(ttl) * MS }] : [];
    }),
  );
  return left.flat();
}
