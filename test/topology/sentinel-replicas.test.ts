/** `replicas: 1` through Sentinel: a grant that was reported has reached the replica, so the next master has it. */
import { expect, test } from "vitest";
import { type Hold, LockClient, type LockClientOptions, type LockError } from "../../src/index.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, forTest, keyState, startSentinel, UNHURRIED, until, untilGone } from "../support/index.js";
import { type Kind, SINGLE } from "../support/place/kinds.js";
import { CALM, makeHasty } from "./sentinel-haste.js";

const DB = 2;
const PATIENCE = { timeout: 20_000 };

failOnUnhandledRejections();

const all = await forFile(startSentinel({ password: "se:cret", downAfter: CALM }));

const connect = (options: LockClientOptions): LockClient =>
  forTest(new LockClient(all.connect({ db: DB }), { ...UNHURRIED, ...options }));

test("every grant that was told before the master was killed is known to the next one [F28]", async () => {
  // Each lock has a lease, so that only the grant itself can have brought it to the new master.
  const client = connect({ replicas: 1, commandTimeout: 6_000 });
  const other = connect({});
  await Promise.all([client.ready(), other.ready()]);
  const told: { kind: Kind; hold: Hold }[] = [];
  const failures: Error[] = [];
  let over = false;
  const takers = SINGLE.map(async (kind) => {
    for (let i = 0; !over; i++) {
      const lock = kind.make([client], `${kind.name} ${i}`);
      await lock.lock({ lease: 120_000 }).then(
        (hold) => told.push({ kind, hold }),
        (error: Error) => failures.push(error),
      );
    }
  });
  await until("grants are told of every kind", () => {
    return SINGLE.every((kind) => told.filter((each) => each.kind === kind).length > 5);
  });
  const before = await all.master();
  await makeHasty(all);
  await before.kill();
  const after = await all.successor(before);
  over = true;
  await Promise.all(takers);
  // The new master has no replica, so it grants nothing any more.
  const redis = after.connect({ db: DB });
  for (const error of failures) {
    expect(error).toMatchObject({ code: expect.stringMatching(/^(REPLICAS|UNAVAILABLE)$/) });
    await untilGone(redis, (error as LockError).lockName);
  }
  for (const { kind, hold } of told) {
    expect((await keyState(redis, hold.lockName)).value).toEqual(kind.fields(hold.ownerId, 1));
    expect(hold.isHeld).toBe(true);
  }
  for (const { kind, hold } of told.slice(-20))
    expect(await kind.rival.make([other], hold.lockName).tryLock()).toBeNull();
  await Promise.all(told.map(({ hold }) => hold.unlock()));
  await expect(client.getLock("alone").lock()).rejects.toMatchObject({ code: "REPLICAS" });
  await all.revive(before);
  await (await until("acknowledged again", () => client.getLock("alone").lock(), PATIENCE)).unlock();
});
