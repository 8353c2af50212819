/** Reads from the witness what the workers' journals wrote there. */
import type { Redis } from "ioredis";
import type { Counter, Section, Sighting } from "./checker.js";

const PAGE = 20_000;

/** All sections of all processes. */
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
    sections.push(...entries.values());
  }
  return sections;
}

function readLine(line: string, process: string, entries: Map<string, Section>): void {
  const [kind, id = "", ...words] = line.split(" ");
  if (kind === "E") {
    const [lock = "", askedAt = "", enteredAt = "", lease, previous] = words;
    entries.set(id, {
      lock,
      id,
      process,
      askedAt: BigInt(askedAt),
      enteredAt: BigInt(enteredAt),
      leftAt: undefined,
      lostAt: undefined,
      lease: Number(lease),
      intruded: previous === "-" ? undefined : previous,
    });
    return;
  }
  const entry = entries.get(id);
  if (!entry) throw new Error(`the journal of ${process} leaves what it never entered: ${line}`);
  const at = BigInt(words[0] ?? "");
  entries.set(id, kind === "L" ? { ...entry, leftAt: at } : { ...entry, leftAt: at, lostAt: at });
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

/** How the server shows these locks now. */
export async function sight(server: Redis, locks: readonly string[]): Promise<Sighting[]> {
  return Promise.all(
    locks.map(async (lock) => {
      const ttl = await server.pttl(lock);
      return { lock, at: process.hrtime.bigint(), ttl };
    }),
  );
}
