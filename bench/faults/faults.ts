/** The faults that every peer meets: how each is injected, and its outcome in a few words. Nothing here is judged. */
import type { RedisServer } from "../../test/support/redis-server.js";
import { until } from "../../test/support/until.js";
import type { Peer } from "./peers.js";
import { begin, type Call, ending, type Member, Scene, type When, whenIs } from "./scene.js";
import { LEASE, type Side } from "./side.js";

export interface PeerFault {
  readonly id: string;
  /** What happens, with the fault's number in the table of docs/faults.md. */
  readonly fault: string;
  run(scene: Scene): Promise<string>;
}

/** How a release wakes a waiter, told from when the waiter gets the lock. */
function woken({ waits }: Peer, when: When | "rejects"): string {
  const soon = waits === "by poll" ? "gets it by its next poll" : "gets it soon";
  return {
    soon,
    late: "sleeps until the lease that it saw has ended",
    never: "never gets it",
    rejects: "rejects",
  }[when];
}

/** What remains of a lock that should be free, told from when it is free. */
const REST = {
  soon: "",
  late: "locked by nobody until the lease ends",
  never: "locked by nobody, and renewed",
} as const;

/** When the lock becomes free, counted from `since`; `side` tries to take it. */
function freed(side: Side, name: string, since: number): Promise<When> {
  return whenIs(() => side.isFree(name), since);
}

const joined = (...parts: string[]): string => parts.filter((part) => part !== "").join("; ");

/** The take is sent twice, because the reply to the first one is lost. */
async function lostTake(scene: Scene): Promise<string> {
  const { name } = scene;
  const server = await scene.server();
  const [{ side, proxy }, other] = [await scene.join(server), await scene.join(server)];
  const fault = proxy.cutReplyOf(scene.aboutLock);
  const call = begin(side.take(name));
  await fault.done;
  const when = await ending(call);
  if (when === "rejects") return joined("rejects", REST[await freed(other.side, name, call.since)]);
  if (when === "never") return "never ends";
  const givenBack = performance.now();
  await side.giveBack(name);
  const rest = REST[await freed(other.side, name, givenBack)];
  return joined(when === "soon" ? "counts once" : "waits for itself until the lease ends", rest);
}

/** The same inside a hold. The lock is given back once for each take that resolved. */
async function lostNestedTake(scene: Scene): Promise<string> {
  const { name, peer } = scene;
  if (!peer.reentrant) return "not reentrant";
  const server = await scene.server();
  const [{ side, proxy }, other] = [await scene.join(server), await scene.join(server)];
  await side.take(name);
  const fault = proxy.cutReplyOf(scene.aboutLock);
  const call = begin(side.takeAgain(name));
  await fault.done;
  const when = await ending(call);
  const givenBack = performance.now();
  if (when !== "rejects") await side.giveBack(name);
  await side.giveBack(name);
  const rest = REST[await freed(other.side, name, givenBack)];
  const count = rest === "" ? "counts once" : "counts once too often";
  return when === "rejects"
    ? joined(rest === "" ? "rejects; does not count" : "rejects, but counts", rest)
    : joined(count, rest);
}

async function lostGiveBack(scene: Scene): Promise<string> {
  const { name } = scene;
  const server = await scene.server();
  const [{ side, proxy }, other] = [await scene.join(server), await scene.join(server)];
  await side.take(name);
  const fault = proxy.cutReplyOf(scene.aboutLock);
  const call = begin(side.giveBack(name));
  await fault.done;
  const rest = REST[await freed(other.side, name, call.since)];
  const when = await ending(call);
  return joined(
    rest === "" ? "given back" : rest,
    when === "rejects" ? "the call rejects" : "the call resolves",
  );
}

/** The waiter learns that its try was refused only when the lock is free again. */
async function earlyRelease(scene: Scene): Promise<string> {
  const { name } = scene;
  const server = await scene.server();
  const [waiter, holder] = [await scene.join(server), await scene.join(server)];
  await holder.side.take(name);
  waiter.proxy.delayReplies(10 * LEASE, scene.aboutLock);
  const call = begin(waiter.side.take(name));
  await until("it has tried", () => waiter.proxy.count(scene.aboutLock) > 0);
  await holder.side.giveBack(name);
  waiter.proxy.restore();
  return woken(scene.peer, await ending(call, performance.now()));
}

interface Pair {
  readonly holder: Side;
  readonly waiter: Member;
  /** The waiter's take. */
  readonly call: Call;
}

/** A holder and a waiter. The waiter has settled: it listens, if it uses messages, and has tried again since. */
async function pair(scene: Scene, server: RedisServer): Promise<Pair> {
  const { name, peer } = scene;
  const [waiter, holder] = [await scene.join(server), await scene.join(server)];
  await holder.side.take(name);
  const call = begin(waiter.side.take(name));
  if (peer.waits === "by message") await until("it listens", () => isHeard(server, name));
  await until("it has tried again", () => waiter.proxy.count(scene.aboutLock) > 1);
  return { holder: holder.side, waiter, call };
}

async function isHeard(server: RedisServer, name: string): Promise<boolean> {
  const channels = await server.call("PUBSUB", "CHANNELS", `*${name}*`);
  return Array.isArray(channels) && channels.length > 0;
}

/**
 * While the lock is freed the waiter is unreachable: neither the message nor the end of its connection comes through.
 */
async function killedAtRelease(scene: Scene): Promise<string> {
  const server = await scene.server();
  const { holder, waiter, call } = await pair(scene, server);
  waiter.proxy.stall();
  await server.call("CLIENT", "KILL", "TYPE", "pubsub");
  await holder.giveBack(scene.name);
  waiter.proxy.restore();
  return woken(scene.peer, await ending(call, performance.now()));
}

async function killedSubscriber(scene: Scene): Promise<string> {
  const server = await scene.server();
  const { holder, call } = await pair(scene, server);
  await server.call("CLIENT", "KILL", "TYPE", "pubsub");
  // The server closes a killed connection a moment later; a waiter that polls has none.
  if (scene.peer.waits === "by message") await whenIs(() => isHeard(server, scene.name), performance.now());
  const givenBack = performance.now();
  await holder.giveBack(scene.name);
  return woken(scene.peer, await ending(call, givenBack));
}

/**
 * What a holder learns about its loss, by itself or by giving back, and whether the give back frees the next one's
 * lock.
 */
async function learns({ peer, name }: Scene, side: Side, soon = "told by its next renewal"): Promise<string> {
  const when = peer.tells ? await whenIs(() => side.told.includes(name), performance.now()) : "never";
  const told = { soon, late: "told by its next renewal", never: "not told" }[when];
  const isKnown = peer.asksRedis === true && (await side.isHeld(name)) === false;
  const givenBack = await ending(begin(side.giveBack(name)));
  const atLast = givenBack === "rejects" ? "the give back rejects" : "the give back resolves";
  return joined(
    told,
    isKnown ? "Redis says so when asked" : "",
    when === "never" ? atLast : "",
    (await side.isFree(name)) ? "the give back frees the lock of the next one" : "",
  );
}

async function stoppedHolder(scene: Scene): Promise<string> {
  const { name, peer } = scene;
  const server = await scene.server();
  const [{ side }, next] = [await scene.join(server), await scene.join(server)];
  await side.take(name);
  const isHeld = await side.isHeldAfterStop(name, async () => {
    await ending(begin(next.side.take(name)));
  });
  const nextLine = isHeld ? "the next line does not know" : "the next line knows";
  const first = isHeld === undefined || peer.asksRedis ? "" : nextLine;
  return joined(first, await learns(scene, side, "told right after"));
}

/** While Redis was away the waiter's call rejected, and the waiter asks again. */
const ASKS_AGAIN = "the waiter rejects and asks again";

/** When the waiter gets the lock, and whether it had to ask again. */
async function granted(
  scene: Scene,
  waiter: Side,
  call: Call,
  since: number,
): Promise<[When | "rejects", string]> {
  const when = await ending(call, since);
  return when === "rejects" ? [await ending(begin(waiter.take(scene.name))), ASKS_AGAIN] : [when, ""];
}

/**
 * Redis was away but kept its data: is the hold renewed, does nobody else get the lock, and can the holder give it
 * back?
 */
async function survives(
  scene: Scene,
  server: RedisServer,
  [holder, waiter, call]: [Side, Side, Call],
): Promise<string> {
  const { name, peer } = scene;
  if (peer.renews) {
    let last = await scene.longestTtl(server);
    const renewed = await whenIs(async () => {
      const before = last;
      last = await scene.longestTtl(server);
      return last > before || call.state === "resolved";
    }, performance.now());
    if (renewed === "never") return "not renewed any more";
  }
  if (call.state === "resolved") return lost(scene, holder);
  const given = begin(holder.giveBack(name));
  const isKept = (await ending(given)) !== "rejects";
  const [when, again] = await granted(scene, waiter, call, given.since);
  return joined(
    isKept ? "kept" : "kept, but the give back rejects",
    again,
    `the waiter ${woken(peer, when)}`,
  );
}

async function restartWithData(scene: Scene): Promise<string> {
  const server = await scene.server("--appendonly", "yes", "--appendfsync", "always");
  const { holder, waiter, call } = await pair(scene, server);
  await server.restart();
  return survives(scene, server, [holder, waiter.side, call]);
}

/** The waiter has the lock: does the holder hold it too, or was it told of its loss before? */
async function lost(scene: Scene, holder: Side): Promise<string> {
  // Who is connected first decides whether two hold it for a moment.
  const asks = async () =>
    (await whenIs(() => holder.told.includes(scene.name), performance.now())) === "soon";
  if (scene.peer.looksAgain && (await asks())) return "told once it is connected again";
  if (holder.told.includes(scene.name)) return "lost; told before another has it";
  return `two hold it; ${await learns(scene, holder)}`;
}

async function twoHold(scene: Scene, holder: Side, waiter: Side, call: Call): Promise<string> {
  const [when, again] = await granted(scene, waiter, call, performance.now());
  const hasIt = when === "soon" || when === "late";
  return joined(again, hasIt ? await lost(scene, holder) : `the waiter ${woken(scene.peer, when)}`);
}

async function restartEmpty(scene: Scene): Promise<string> {
  const server = await scene.server();
  const { holder, waiter, call } = await pair(scene, server);
  await server.restart();
  return twoHold(scene, holder, waiter.side, call);
}

async function failoverKept(scene: Scene): Promise<string> {
  const all = await scene.sentinel();
  const [holder, waiter] = [await scene.joinSentinel(all), await scene.joinSentinel(all)];
  await holder.take(scene.name);
  const call = begin(waiter.take(scene.name));
  const writer = all.connect();
  await until("the replica has the grant", async () => {
    await writer.set("last", 1);
    return (await writer.wait(1, 1_000)) === 1;
  });
  return survives(scene, await all.killMaster(), [holder, waiter, call]);
}

/** Outcome of a take while the replica is connected but stopped: nobody knows whether the replica will get the grant. */
async function unacknowledged(scene: Scene, options?: object): Promise<string> {
  const all = await scene.sentinel();
  const side = await scene.joinSentinel(all, options);
  const [replica] = await all.replicas();
  replica?.pause();
  const when = await ending(begin(side.take(scene.name)));
  if (when === "rejects") return "rejects";
  return when === "never" ? "never ends" : "is granted";
}

/** A replica without the grant becomes master. */
async function forgottenGrant(scene: Scene, options?: object): Promise<string> {
  const all = await scene.sentinel();
  const [holder, next] = [await scene.joinSentinel(all, options), await scene.joinSentinel(all, options)];
  const [master, [replica]] = [await all.master(), await all.replicas()];
  if (replica === undefined) throw new Error("no replica");
  await all.cutOff(replica);
  const when = await ending(begin(holder.take(scene.name)));
  if (when === "rejects") return "the take rejects, nobody holds it";
  if (when === "never") return "the take never ends";
  await master.kill();
  replica.resume();
  await all.successor(master);
  return twoHold(scene, holder, next, begin(next.take(scene.name)));
}

/** The fault with the peer's defaults, and again with its setting for replicas if it has one. */
function alsoWithReplicas(strike: (scene: Scene, options?: object) => Promise<string>) {
  return async (scene: Scene): Promise<string> => {
    const plain = await strike(scene);
    const { withReplicas } = scene.peer;
    if (withReplicas === undefined) return plain;
    await using second = new Scene(scene.peer, scene.name);
    return joined(plain, `with \`${withReplicas.name}\`: ${await strike(second, withReplicas.options)}`);
  };
}

/** The rows of the table. */
export const FAULTS: readonly PeerFault[] = [
  { id: "lost-take", fault: "the reply to a take is lost (F1)", run: lostTake },
  { id: "lost-nested-take", fault: "the reply to a nested take is lost (F1)", run: lostNestedTake },
  { id: "lost-give-back", fault: "the reply to a give back is lost (F4)", run: lostGiveBack },
  {
    id: "early-release",
    fault: "a release between a refused try and the subscription (F10): the waiter",
    run: earlyRelease,
  },
  {
    id: "killed-at-release",
    fault: "the subscriber is killed, and the release comes before it is back (F11): the waiter",
    run: killedAtRelease,
  },
  {
    id: "killed-subscriber",
    fault: "the subscriber is killed, and the release comes when it is back (F11): the waiter",
    run: killedSubscriber,
  },
  {
    id: "stopped-holder",
    fault: "the holder is stopped until another has the lock (F17): the holder",
    run: stoppedHolder,
  },
  {
    id: "restart-with-data",
    fault: "Redis is killed and restarts with its data (F22)",
    run: restartWithData,
  },
  { id: "restart-empty", fault: "Redis is killed and restarts empty (F22)", run: restartEmpty },
  { id: "failover-kept", fault: "Sentinel fails over, the replica has the grant (F27)", run: failoverKept },
  {
    id: "failover-lost",
    fault: "Sentinel fails over, the replica was cut off before the grant (F28)",
    run: alsoWithReplicas(forgottenGrant),
  },
  {
    id: "silent-replica",
    fault: "the replica does not acknowledge, though its link stands (F28): the take",
    run: alsoWithReplicas(unacknowledged),
  },
];

/** The outcome of a fault on a peer, in a few words. */
export async function outcomeOf(fault: PeerFault, peer: Peer): Promise<string> {
  await using scene = new Scene(peer, `${fault.id}-lock`);
  const outcome = await fault.run(scene);
  return scene.unhandled > 0 ? `${outcome}; a rejection that nobody hears` : outcome;
}
