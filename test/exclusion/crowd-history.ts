/** The traces of a crowd: its journals, the observed ends of leases, and the permits on the server. */
import type { Cluster, Redis } from "ioredis";
import type { CrowdHistory, InVain, Rest, Stay } from "./crowd-checker.js";
import { later, MS } from "./sections.js";

/** The instants in a journal's lines after the first line of a stay. */
const INSTANTS = { L: "leftAt", X: "lostAt", R: "refusedAt" } as const;

/** Milliseconds between two looks at the leases. */
const LOOKS = 10;

/**
 * Looks again and again at the leases of all permits that are out. A process that was killed or stopped cannot tell how
 * long it had its permits, but the last lease on the server can.
 */
export class Scribe {
  /** The end of each permit's lease, by the server's clock. */
  readonly ends: Map<string, number> = new Map();
  readonly #server: Redis | Cluster;
  readonly #locks: readonly string[];
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(server: Redis | Cluster, locks: readonly string[]) {
    this.#server = server;
    this.#locks = locks;
    this.#writing = this.#write();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (!this.#stopped) {
      // The server may be down; the end that it told last is then still the right one.
      await Promise.allSettled(this.#locks.map((lock) => this.#look(lock)));
      await new Promise((resolve) => setTimeout(resolve, LOOKS));
    }
  }

  async #look(lock: string): Promise<void> {
    const found = await this.#server.zrangeBuffer(`{${lock}}:timeout`, "0", "-1", "WITHSCORES");
    for (let i = 0; i < found.length; i += 2) {
      this.ends.set((found[i] as Buffer).toString("hex"), Number(found[i + 1]));
    }
  }
}

/** The number of stays that have begun. */
export async function countEntries(witness: Redis, prefix: string): Promise<number> {
  const lines = await readJournals(witness, prefix);
  return lines.filter((line) => line.startsWith("E ")).length;
}

export async function readCrowd(
  witness: Redis,
  prefix: string,
  ends: ReadonlyMap<string, number>,
): Promise<Pick<CrowdHistory, "stays" | "inVain">> {
  const epoch = findEpoch();
  const stays = new Map<string, Stay>();
  const inVain: InVain[] = [];
  const read = (line: string): void => {
    const [what, id = "", ...words] = line.split(" ");
    if (what === "E")
      stays.set(
        id,
        readEntry(id, words, (permit) => endOf(permit, ends, epoch)),
      );
    else if (what === "V") inVain.push(readVain(id, words));
    else {
      const stay = stays.get(id);
      if (!stay) throw new Error(`a journal leaves what it never entered: ${line}`);
      const at = BigInt(words[0] ?? "");
      stays.set(id, { ...stay, [INSTANTS[what as keyof typeof INSTANTS]]: at });
    }
  };
  for (const line of await readJournals(witness, prefix)) read(line);
  return { stays: [...stays.values()], inVain };
}

/** The lines of all processes; those of one process are in their order. */
async function readJournals(witness: Redis, prefix: string): Promise<string[]> {
  const keys = await witness.keys(`crowd-journal:${prefix}-p*`);
  return (await Promise.all(keys.map((key) => witness.lrange(key, 0, -1)))).flat();
}

function readEntry(id: string, words: readonly string[], seen: (permit: string) => bigint | undefined): Stay {
  const [lock = "", permits, asked = "", entered = "", lease = "-", permit = "-", inside = ""] = words;
  const askedAt = BigInt(asked);
  // The permit may have expired before a look saw it; it did not expire before this.
  const least = lease === "-" ? undefined : askedAt + BigInt(lease) * MS;
  return {
    lock,
    id,
    process: id.slice(0, id.indexOf(":")),
    permits: Number(permits),
    askedAt,
    enteredAt: BigInt(entered),
    leftAt: undefined,
    lostAt: undefined,
    lapsedAt: permit === "-" ? undefined : (seen(permit) ?? least),
    refusedAt: undefined,
    inside: inside.split(","),
    kept: permit !== "-" && lease === "-",
  };
}

function readVain(lock: string, [permits, asked = "", until = ""]: readonly string[]): InVain {
  return { lock, permits: Number(permits), askedAt: BigInt(asked), until: BigInt(until) };
}

/**
 * The monotonic clock at the zero of the wall clock, which is the server's too. The process may stand still between the
 * two readings, which makes the difference smaller, so the largest of several is the best.
 */
function findEpoch(): bigint {
  const looks = Array.from({ length: 20 }, () => process.hrtime.bigint() - BigInt(Date.now()) * MS);
  return looks.reduce(later);
}

function endOf(permit: string, ends: ReadonlyMap<string, number>, epoch: bigint): bigint | undefined {
  const end = ends.get(permit);
  return end === undefined ? undefined : BigInt(end) * MS + epoch;
}

/** The permits on the server; those whose lease has ended count as free. */
export async function restOf(server: Redis | Cluster, lock: string): Promise<Rest> {
  const [[seconds], free, scores] = await Promise.all([
    server.time(),
    server.get(lock),
    server.zrange(`{${lock}}:timeout`, "0", "-1", "WITHSCORES"),
  ]);
  const ends = scores.filter((_, i) => i % 2 === 1).map(Number);
  const lapsed = ends.filter((end) => end <= Number(seconds) * 1_000).length;
  return { lock, available: Number(free) + lapsed, acquired: ends.length - lapsed };
}
