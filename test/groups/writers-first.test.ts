/** Readers that come without a pause keep no writer out; this holds for groups, too. */
import { test } from "vitest";
import { type Lock, LockClient, MultiLock, RedLock } from "../../src/index.js";
import { forFile, forTest, PATIENCE, startRedis, UNHURRIED, until } from "../support/index.js";

const MASTERS = 3;
const READERS = 4;
/** Milliseconds of a reader's section. */
const SECTION = 20;

const servers = await Promise.all(Array.from({ length: MASTERS }, () => forFile(startRedis())));

type Group = typeof MultiLock | typeof RedLock;
type Side = "readLock" | "writeLock";

/** One side of a read-write lock on every master, by clients of its own. */
function connect(make: Group, name: string): (side: Side) => MultiLock {
  const own = servers.map((server) => forTest(new LockClient(server.connect(), UNHURRIED)));
  return (side) => {
    const locks: Lock[] = own.map((client) => client.getReadWriteLock(name)[side]());
    return new make(...locks);
  };
}

test.each([
  ["MultiLock", MultiLock],
  ["RedLock", RedLock],
])(
  "a stream of readers cannot starve a writer: %s",
  async (name, make) => {
    const readers = connect(make, name)("readLock");
    const writer = connect(make, name)("writeLock");
    let reads = 0;
    let over = false;
    async function readOn(): Promise<void> {
      while (!over) {
        await readers.run(() => new Promise((resolve) => setTimeout(resolve, SECTION)));
        reads++;
      }
    }
    // The readers start one after the other, so that at any time one of them reads.
    const stream: Promise<void>[] = [];
    for (let i = 0; i < READERS; i++) {
      stream.push(readOn());
      await new Promise((resolve) => setTimeout(resolve, SECTION / READERS));
    }
    await until("they read one after the other", () => reads > READERS);
    const hold = await writer.lock({ wait: PATIENCE });
    over = true;
    await hold.unlock();
    await Promise.all(stream);
  },
  60_000,
);
