/**
 * Of a client's calls that set the same, the last one counts, in whatever order they come through: in virtual time, on
 * the server in memory.
 */
import { expect } from "vitest";
import { ReplyError } from "../../../src/entries/testing/reply.js";
import { type Scene, scene, testIn, watch } from "./virtual.js";

const COMMAND_TIMEOUT = 600;
/** The keys that permits leave on the server; a test deletes them, because it must leave nothing. */
const KEYS = ["job", "{job}:timeout"];
const test = testIn(
  () => scene({ commandTimeout: COMMAND_TIMEOUT }),
  async ({ server }: Scene, body) => {
    await body();
    for (const key of KEYS) server.delete(key);
  },
);

/** What the server answers a write while it has too few replicas. */
const NOREPLICAS = "NOREPLICAS Not enough good replicas to write.";

const permitsOf = ({ a }: Scene) => a.client.getPermitExpirableSemaphore("job");

/** The only permit, which has a lease of half a minute. */
async function onlyPermit(place: Scene): Promise<string> {
  await permitsOf(place).trySetPermits(1);
  return permitsOf(place).acquire({ lease: 30_000 });
}

/** What another client can take by now. */
async function othersCanTake({ b, settle }: Scene): Promise<boolean> {
  const taken = watch(b.client.getPermitExpirableSemaphore("job").tryAcquire(0, 5_000));
  await settle();
  return taken.value !== null;
}

/** Makes the server refuse this script, as long as `refuses` says so of its arguments. */
function refuse({ server }: Scene, script: string, refuses: (args: readonly string[]) => boolean): void {
  server.instead = ({ name, args }) => {
    if (name === script && refuses(args)) throw new ReplyError(NOREPLICAS);
    return undefined;
  };
}

test("a lease that was given up does not cut a later one [B225]", async (place) => {
  const { advance } = place;
  const permits = permitsOf(place);
  const id = await onlyPermit(place);
  let isRefusing = true;
  refuse(place, "permits/update", () => isRefusing);
  const first = watch(permits.updateLeaseTime(id, 400));
  await advance(COMMAND_TIMEOUT + 50);
  expect(first.outcome).toBe("UNAVAILABLE");
  const second = watch(permits.updateLeaseTime(id, 60_000));
  isRefusing = false;
  // The second call is tried again after 10 ms, the first after 250 ms.
  await advance(20);
  expect(second.value).toBe(true);
  await advance(1_000);
  expect(await othersCanTake(place)).toBe(false);
});

test("of leases that are given at once the last one counts, though the first is refused at first", async (place) => {
  const permits = permitsOf(place);
  const id = await onlyPermit(place);
  let refusals = 1;
  refuse(place, "permits/update", (args) => args.includes("400") && refusals-- > 0);
  const calls = [400, 60_000].map((lease) => watch(permits.updateLeaseTime(id, lease)));
  await place.advance(1_000);
  expect(calls.map(({ value }) => value)).toEqual([true, true]);
  expect(await othersCanTake(place)).toBe(false);
});

test("leases that are given to several permits at once are each permit's own", async (place) => {
  const { server, advance } = place;
  const permits = permitsOf(place);
  await permits.trySetPermits(2);
  const ids = [await permits.acquire({ lease: 30_000 }), await permits.acquire({ lease: 30_000 })];
  let refusals = 1;
  refuse(place, "permits/update", (args) => args.includes("40000") && refusals-- > 0);
  const calls = [40_000, 50_000].map((lease, i) => watch(permits.updateLeaseTime(ids[i] ?? "", lease)));
  await advance(1_000);
  expect(calls.map(({ value }) => value)).toEqual([true, true]);
  const ends = [...(server.keys.get("{job}:timeout", "zset") ?? []).values()].map(Number);
  expect(Math.max(...ends) - Math.min(...ends)).toBeGreaterThan(9_000);
});

test("a number of permits that was given up does not become the limit after a later one", async (place) => {
  const { advance, settle } = place;
  const permits = permitsOf(place);
  await permits.trySetPermits(1);
  let isRefusing = true;
  refuse(place, "permits/set", () => isRefusing);
  const first = watch(permits.setPermits(9));
  await advance(COMMAND_TIMEOUT + 50);
  expect(first.outcome).toBe("UNAVAILABLE");
  const second = watch(permits.setPermits(3));
  isRefusing = false;
  await advance(20);
  expect(second.state).toBe("resolved");
  await advance(1_000);
  const limit = watch(permits.getPermits());
  await settle();
  expect(limit.value).toBe(3);
});
