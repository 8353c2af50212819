/** Answers that arrive after the end of the hold that they are about, in virtual time. */
import { expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { Link, type Wire } from "../../src/entries/testing/link.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";
import { failOnUnhandledRejections } from "./harness.js";

failOnUnhandledRejections();

/** A client whose server executes commands at once, while the test can keep its answers back. */
function start(options: LockClientOptions = {}) {
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
    ...options,
    ...({ [INTERNALS]: { clock: server.clock } } as LockClientOptions),
  });
  return {
    server,
    client,
    holdBack: () => {
      isHeldBack = true;
    },
    letThrough: () => {
      isHeldBack = false;
      for (const arrive of answers.splice(0)) arrive();
    },
  };
}

test("a nested call that is answered after its owner's last hold was lost holds what Redis has", async () => {
  const { server, client, holdBack, letThrough } = start();
  const [lock, owner] = [client.getLock("job"), client.newOwner()];
  const outer = await lock.lock({ lease: 1_000, owner });

  holdBack();
  const nested = lock.lock({ owner });
  await server.advance(990);
  expect(outer.isHeld).toBe(false);
  letThrough();

  const hold = await nested;
  expect(hold.isHeld).toBe(true);
  expect([...(server.keys.get("job", "hash") ?? [])]).toEqual([[hold.ownerId, "1"]]);
  await hold.unlock();
  await client.close({ timeout: 0 });
});

test.each(["known to the server", "new to it"])(
  "an extend that waits for the one before it while its hold ends says that it is lost; its script is %s",
  async (script) => {
    const { server, client, holdBack, letThrough } = start({ commandTimeout: 300 });
    const hold = await client.getLock("job").lock({ lease: 2_000 });
    if (script === "known to the server") await hold.extend(2_000);

    holdBack();
    const unanswered = expect(hold.extend(2_000)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await server.advance(300);
    await unanswered;
    await server.advance(1_500);
    const behind = expect(hold.extend(2_000)).rejects.toMatchObject({ code: "LOCK_LOST" });
    await server.advance(190);
    expect(hold.isHeld).toBe(false);
    letThrough();
    await behind;
    await server.advance(1_000);
    await client.close({ timeout: 0 });
  },
);
