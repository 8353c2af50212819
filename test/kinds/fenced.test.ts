/** Contract section 4: fencing tokens: one for each outermost grant, always higher than all before, exact at any size. */
import { expect } from "vitest";
import { tokenCounter } from "../../src/base/names.js";
import type { FencedLock } from "../../src/index.js";
import { FENCED, NAME, row, type VirtualPlace, watch } from "../support/place/index.js";

const kinds = [FENCED];
const COUNTER = tokenCounter(NAME);

const locks = ({ lock, twin }: VirtualPlace) => [lock, twin] as unknown as [FencedLock, FencedLock];

/** Takes the lock and gives it back. */
async function draw(lock: FencedLock): Promise<bigint> {
  const hold = await lock.lock();
  await hold.unlock();
  return hold.token;
}

function expectRising(tokens: readonly bigint[]): void {
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
}

row(
  "a nested hold has the token of the outermost one in all forms, which stays when that one ends [§4 fenced]",
  { kinds },
  async (place) => {
    const [lock] = locks(place);
    await place.client.scope(async () => {
      const outer = await lock.lock();
      const tokens = [(await lock.lock({ lease: 60_000 })).token, (await lock.tryLock())?.token];
      await lock.run((hold) => tokens.push(hold.token));
      await outer.unlock();
      tokens.push((await lock.lock()).token);
      expect(tokens).toEqual(tokens.map(() => outer.token));
      for (const _ of [1, 2, 3]) await lock.unlock();
      expect(await draw(lock)).toBe(outer.token + 1n);
    });
  },
);

row(
  "tokens rise over a lease that ends, a lock that is forced, a client that is closed, and a server that forgot all [§4 fenced]",
  { kinds, client: { watchdogTimeout: 3_000 } },
  async (place) => {
    const { b, party, kind, pass, view, server } = place;
    const [lock, theirs] = locks(place);
    const tokens = [await draw(lock), (await theirs.lock()).token];
    await b.cut();
    await pass(3_100);
    tokens.push((await lock.lock()).token);
    await lock.forceUnlock();
    const third = party();
    const short = kind.make(third.clients, NAME) as unknown as FencedLock;
    tokens.push((await short.lock()).token);
    await third.close({ timeout: 0 });
    tokens.push(await draw(lock));
    await view.wipe();
    server.delete(COUNTER);
    await pass(10);
    tokens.push(await draw(lock), await draw(lock));
    expectRising(tokens);
    await b.mend();
    await pass(5_000);
  },
);

row("tokens are exact beyond what a number can tell [§4 fenced]", { kinds }, async (place) => {
  const [lock] = locks(place);
  for (const before of [9_007_199_254_740_992n, 9_223_372_036_854_775_800n]) {
    place.server.execute(["SET", COUNTER, String(before)]);
    const hold = await lock.lock();
    const inner = await lock.lock({ owner: hold });
    expect([hold.token, inner.token]).toEqual([before + 1n, before + 1n]);
    await inner.unlock();
    await hold.unlock();
    expect(await draw(lock)).toBe(before + 2n);
  }
});

row(
  "a grant whose reply is lost draws one token, and calls that are refused draw none [§4 fenced] [§2 counts-once]",
  { kinds },
  async (place) => {
    const { a, server, settle, pass } = place;
    const [lock, theirs] = locks(place);
    const before = await draw(lock);
    a.keep("replies");
    const call = watch(lock.lock());
    await settle();
    await a.reconnect();
    expect(call.value?.token).toBe(before + 1n);
    const late = watch(theirs.lock({ wait: 2_500 }));
    expect(await theirs.tryLock()).toBeNull();
    await pass(2_500);
    expect(late.outcome).toBe("WAIT_TIMEOUT");
    expect(server.execute(["GET", COUNTER])).toBe(String(before + 1n));
    await call.value?.unlock();
    expect(await draw(theirs)).toBeGreaterThan(before + 1n);
  },
);

row(
  "fenced locks of the names a and {a} are two, and their tokens come from one counter [§4 fenced] [§7 wire]",
  { kinds },
  async (place) => {
    const [bare] = locks(place);
    const braced = place.client.getFencedLock(`{${NAME}}`);
    const one = await bare.lock();
    const two = await braced.lock();
    expect([one.isHeld, two.isHeld, two.token]).toEqual([true, true, one.token + 1n]);
    await one.unlock();
    expect(await draw(bare)).toBe(two.token + 1n);
    await two.unlock();
  },
);
