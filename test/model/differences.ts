/** Where the library and the server at rest report something else of a lock than the model. */
import type { Hold, Lock, Owner } from "../../src/index.js";
import type * as model from "./parties.js";
import type { Side } from "./rules.js";
import { type Pair, pick, type Scene } from "./scene.js";
import { WATCHDOG } from "./world.js";

/** Milliseconds, because a TTL is read a little later than it was set. */
const TTL_SLACK = 50;
const TOMBSTONE = /^(redisson_unlock_latch|holdfast_over)/;
const LONGEST_TOMBSTONE = 60_000;
/** Keys of presence, which stay for two rounds; a round is a third of the watchdog's time-out. */
const TOLD = /^holdfast_client(s$|:)/;
const LONGEST_TOLD = (2 * WATCHDOG) / 3 + TTL_SLACK;

type Differences = string[];

/** `turn` rises from check to check, so that sides, clients and questions take turns. */
export async function differences(scene: Scene, turn: number): Promise<Differences> {
  const { world, kind, owners } = scene;
  const found = scene.holds.flatMap((hold) => ofHold(scene, hold));
  const keys = world.travel();
  const open = world.inhabitants.flatMap(({ closed }, i) => (closed ? [] : [i]));
  const side = pick(kind.rules.sides, turn) as Side;
  const client = pick(open, turn >> 1);
  const asked = open
    .flatMap((i) => owners[i] ?? [])
    .map((owner) => ofOwner(scene, owner, side, (turn >> 1) % 2 === 0));
  if (client !== undefined) asked.push(ofSide(scene, scene.lock(client, side), side));
  found.push(...(await Promise.all(asked)).flat());
  found.push(...ofKeys(scene, await keys));
  return found;
}

/** What is left on the server and in the process after all calls were given up and all holds given back. */
export async function leftovers({ world, kind, name }: Scene): Promise<Differences> {
  const stays = (key: string) => TOMBSTONE.test(key) || TOLD.test(key) || kind.counters?.test(key);
  const keys = [...(await world.travel()).keys()].filter((key) => !stays(key));
  const channels = await world.channels(name);
  return [...keys, ...channels].map((left) => `${left} is left`);
}

function ofHold(scene: Scene, hold: Pair<Hold, model.Hold>): Differences {
  const { real, model: expected } = hold;
  const held = expected.state === "held";
  const name = scene.nameOf(hold);
  const remaining = held ? expected.ends - scene.world.now : 0;
  return [
    ...compare(`${name}.isHeld`, real.isHeld, held),
    ...compare(`${name}.signal.aborted`, real.signal.aborted, expected.state === "lost"),
    ...within(`${name}.remaining`, real.remaining, remaining - 1, remaining + 1),
  ];
}

async function ofSide({ world, model }: Scene, lock: Lock, side: Side): Promise<Differences> {
  const [locked, ttl] = await Promise.all([lock.isLocked(), lock.remainTimeToLive()]);
  const { least, most } = model.holds.ttl(side);
  const compareTtl = () => {
    const slack = TTL_SLACK + world.lag;
    return within(`remainTimeToLive(${side})`, ttl, least - slack, most + slack);
  };
  // A wrong TTL may come from a pause just before it was read. One more travel shows that.
  if (compareTtl().length > 0) await world.travel();
  return [...compare(`isLocked(${side})`, locked, model.holds.live(side).length > 0), ...compareTtl()];
}

async function ofOwner(
  scene: Scene,
  { real: owner, model: expected }: Pair<Owner, model.Owner>,
  side: Side,
  counting: boolean,
): Promise<Differences> {
  const lock = scene.lock(expected.client, side);
  const count = scene.model.holds.liveOf(expected, side).length;
  const text = `(${side}) of owner ${expected.client}/${expected.n}`;
  return counting
    ? compare(`getHoldCount${text}`, await lock.getHoldCount({ owner }), count)
    : compare(`isHeldByCurrentOwner${text}`, await lock.isHeldByCurrentOwner({ owner }), count > 0);
}

function ofKeys({ name, kind, model, world }: Scene, keys: ReadonlyMap<string, number>): Differences {
  const isQueue = (key: string) => model.waiting.length > 0 && kind.queues?.test(key);
  const isEndless = (key: string) => kind.counters?.test(key) || isQueue(key);
  return [
    ...compare("the lock's key exists", keys.has(name), model.holds.live().length > 0),
    ...[...keys].flatMap(([key, ttl]) => {
      if (ttl < 0) return isEndless(key) ? [] : [`${key} has no TTL`];
      const most = TOMBSTONE.test(key) ? LONGEST_TOMBSTONE : TOLD.test(key) ? LONGEST_TOLD : ttl;
      return ttl > most + world.lag ? [`${key} lives for ${ttl} ms`] : [];
    }),
  ];
}

function compare<T>(what: string, actual: T, expected: T): Differences {
  return actual === expected ? [] : [`${what}: ${actual}, not ${expected}`];
}

function within(what: string, actual: number, least: number, most: number): Differences {
  return actual >= least && actual <= most ? [] : [`${what}: ${actual}, not between ${least} and ${most}`];
}
