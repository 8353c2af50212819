/** Contract sections 1 and 8: each client of a member tells the events of the group, and those of its own members. */
import { expect } from "vitest";
import { type LockEventName, MultiLock } from "../../../src/index.js";
import { EVENTS } from "../../support/event-names.js";
import { FAIR, GROUPS, NAME, READ, RED, row, WRITE, watch } from "../../support/place/index.js";
import { type Apart, multiRow } from "./apart.js";

interface Told {
  readonly name: LockEventName;
  readonly kind: string;
  readonly lockName: string;
  readonly ownerId?: string | undefined;
}

/** What each client of the first party tells from now on. */
function listen({ a }: Pick<Apart, "a">): Told[][] {
  return a.clients.map((client) => {
    const told: Told[] = [];
    for (const name of EVENTS) client.on(name, (event) => void told.push({ ...event, name } as Told));
    return told;
  });
}

const lifeOf = (told: readonly Told[], kind: string) =>
  told.flatMap((each) => (each.kind === kind ? [each.name] : []));

multiRow(
  "acquired and released are told of the group on every client, and of each member on its own [§1 events]",
  async (place) => {
    const { a, of } = place;
    const told = listen(place);
    const hold = await new MultiLock(of(a, "a0", FAIR), of(a, "b1", WRITE)).lock();
    await hold.unlock();
    const life = ["acquired", "released"];
    expect(told.map((each) => lifeOf(each, "multi"))).toEqual([life, life]);
    expect(told.map((each) => [lifeOf(each, "fair"), lifeOf(each, "readwrite")])).toEqual([
      [life, []],
      [[], life],
    ]);
    for (const each of told)
      for (const event of each) {
        const group = { lockName: "a,b", ownerId: hold.ownerId };
        if (event.kind === "multi") expect(event).toMatchObject(group);
        if (event.name === "acquired")
          expect(event).toMatchObject({ nested: false, waited: expect.any(Number) });
        else expect(event).toMatchObject({ held: expect.any(Number) });
      }
  },
);

row(
  "a call that waits and gives up tells waiting and gaveUp once, however many members it waits for [§1 events] [B237]",
  { kinds: GROUPS },
  async ({ kind, a, lock, rival, pass }) => {
    const told = listen({ a }).slice(0, kind.servers);
    const theirs = await rival.lock();
    expect(await lock.tryLock()).toBeNull();
    const call = watch(lock.lock({ wait: 200 }));
    const granted = watch(lock.lock({ owner: a.client.newOwner() }));
    await pass(200);
    expect(call.outcome).toBe("WAIT_TIMEOUT");
    await theirs.unlock();
    await pass(1_000);
    await granted.value?.unlock();
    for (const each of told) {
      const ofGroup = each.filter((event) => event.kind === kind.kind);
      const names = ofGroup.map(({ name }) => name);
      expect(names).toEqual(["rejected", "waiting", "waiting", "gaveUp", "acquired", "released"]);
      for (const { lockName, ownerId } of ofGroup) {
        expect(lockName).toBe(lock.name);
        expect(ownerId).toMatch(new RegExp(`^${a.client.id}:\\d+$`));
      }
      const waiting = ofGroup.flatMap(({ name, ownerId }) => (name === "waiting" ? [ownerId] : []));
      const gaveUp = ofGroup.find(({ name }) => name === "gaveUp");
      expect(waiting).toContain(gaveUp?.ownerId);
      expect(gaveUp).toMatchObject({ reason: "timeout", waited: 200 });
      expect(ofGroup.at(-1)?.ownerId).toBe(granted.value?.ownerId);
    }
    expect(told.flatMap((each) => lifeOf(each, "lock")).filter((name) => name === "acquired")).toHaveLength(
      kind.members,
    );
  },
);

multiRow(
  "the loss of a member is told of it on its client, of the group on both, and the rest is released [§1 events]",
  async (place) => {
    const { a, of, group, settle } = place;
    const hold = await group("a0", "b1").lock();
    const told = listen(place);
    await of(a, "b1").forceUnlock();
    await settle();
    expect(told.map((each) => lifeOf(each, "multi"))).toEqual([["lost"], ["lost"]]);
    expect(told.map((each) => lifeOf(each, "lock"))).toEqual([["released"], ["lost"]]);
    expect(told[1]).toContainEqual(
      expect.objectContaining({ lockName: "a,b", ownerId: hold.ownerId, reason: "forced" }),
    );
    await hold.unlock().catch(() => {});
  },
);

row(
  "a member that is lost before a majority has granted the lock is told neither as acquired nor as lost [§1 events]",
  { kinds: [RED] },
  async ({ a, lock, settle }) => {
    const told = listen({ a });
    a.at(1, 2).keep("replies");
    const call = watch(lock.lock());
    await settle();
    await a.clients[0]?.getLock(NAME).forceUnlock();
    await a.letGo();
    await call.value?.unlock();
    await settle();
    const life = ["acquired", "released"];
    expect(told.map((each) => lifeOf(each, "lock"))).toEqual([[], life, life]);
  },
);

multiRow(
  "a hold is nested if its owner has all members on the same sides, and not if it has some [§1 events] [B235]",
  async ({ a, of, client }) => {
    const nested: boolean[] = [];
    client.on("acquired", ({ kind, nested: told }) => void (kind === "multi" && nested.push(told)));
    const both = new MultiLock(of(a, "s0", READ), of(a, "s0", WRITE));
    const outer = await both.lock();
    const inner = await both.lock({ owner: outer });
    for (const hold of [inner, outer]) await hold.unlock();
    const single = await of(a, "a0").lock();
    const some = await new MultiLock(of(a, "a0"), of(a, "b1")).lock({ owner: single });
    for (const hold of [some, single]) await hold.unlock();
    expect(nested).toEqual([false, true, false]);
  },
);

row(
  "a call that waits for a RedLock is seen to wait on each master, by the client of that master [§8 holder-client] [B132]",
  { kinds: [RED], client: { presence: true } },
  async ({ a, b, lock, twin, pass }) => {
    const hold = await lock.lock();
    const call = watch(twin.lock());
    await pass(15_000);
    const seen = await Promise.all(a.clients.map(async (client) => (await client.inspect("job"))?.waiting));
    expect(seen.map((each) => each?.map(({ client }) => client?.id))).toEqual(
      b.clients.map(({ id }) => [id]),
    );
    await hold.unlock();
    await pass(1_000);
    expect((await b.clients[1]?.inspect("job"))?.waiting).toEqual([]);
    await call.value?.unlock();
    for (const party of [a, b]) await party.close();
  },
);
