/** When a client publishes its presence, in virtual time. */
import { expect, test } from "vitest";
import { NAME, openVirtual, PLAIN, watch } from "../../support/place/index.js";

/** The watchdog's time-out; a round is a third of it. */
const QUICK = 900;
const isTelling = (name: string): boolean => name.startsWith("client/");

test("in an outage no tellings pile up, and what is told after it is how things are then [B75]", async () => {
  const { a, b, server, pass } = openVirtual(PLAIN, {
    presence: true,
    watchdogTimeout: QUICK,
    commandTimeout: 3_000,
  });
  const theirs = await b.client.getLock(NAME).lock();
  const waiting = watch(a.client.getLock(NAME).lock());
  await pass(2_000);
  expect((await b.client.inspect(NAME))?.waiting).toHaveLength(1);
  a.keep("requests");
  await pass(60_000);
  server.took();
  await a.letGo();
  // The client gives each telling up after the time of a command, but the connection still sends it.
  expect(server.took().filter(isTelling).length).toBeLessThanOrEqual(60_000 / 3_000 + 1);
  await theirs.unlock();
  await (await waiting.promise).unlock();
});

test("an owner that holds both sides is shown since its first hold, and holds the lock once [B77]", async () => {
  const { a, b, server, pass } = openVirtual(PLAIN, { presence: true });
  const sides = a.client.getReadWriteLock(NAME);
  const theirs = await b.client.getLock("other").lock();
  const begun = server.clock.wall();
  await a.client.scope(async () => {
    await sides.writeLock().lock();
    await pass(3_000);
    await sides.readLock().lock();
    const waiting = watch(a.client.getLock("other").lock());
    await pass(12_000);
    const info = await b.client.inspect(NAME);
    expect(info?.holders).toMatchObject([{ count: 2, since: new Date(begun) }]);
    expect((await b.client.inspect("other"))?.waiting).toMatchObject([{ holds: [NAME] }]);
    await theirs.unlock();
    await (await waiting.promise).unlock();
    await sides.readLock().unlock();
    await sides.writeLock().unlock();
  });
});
