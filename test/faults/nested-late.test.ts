/** A nested call whose answer is slower than its owner's last hold is long. */
import { expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { Link, type Wire } from "../../src/entries/testing/link.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";

test("a nested call that is answered after its owner's last hold was lost holds what Redis has", async () => {
  const server = new MemoryServer();
  let isHeldBack = false;
  const answers: (() => void)[] = [];
  const wire: Wire = {
    toServer: (arrive) => arrive(),
    toClient: (arrive) => (isHeldBack ? answers.push(arrive) : server.later(arrive)),
    close: () => {},
  };
  const connection = new MemoryConnection(new Link(server, () => wire), {}, true);
  const client = new LockClient(connection as unknown as RedisConnection, {
    ...({ [INTERNALS]: { clock: server.clock } } as LockClientOptions),
  });
  const [lock, owner] = [client.getLock("job"), client.newOwner()];
  const outer = await lock.lock({ lease: 1_000, owner });

  isHeldBack = true;
  const nested = lock.lock({ owner });
  await server.advance(990);
  expect(outer.isHeld).toBe(false);
  isHeldBack = false;
  for (const arrive of answers.splice(0)) arrive();

  const hold = await nested;
  expect(hold.isHeld).toBe(true);
  expect([...(server.keys.get("job", "hash") ?? [])]).toEqual([[hold.ownerId, "1"]]);
  await hold.unlock();
  await client.close({ timeout: 0 });
});
