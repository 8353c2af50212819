/** Plays a sequence in both worlds, and compares the outcome of each call and the state that it leaves. */
import type { Redis } from "ioredis";
import { until } from "../../support/index.js";
import type { NodeParty } from "../party.js";
import type { Call, Kind } from "./calls.js";
import { clearedUp, DELIBERATE, isForced, keepHash, seenBy, withoutForced } from "./deliberate.js";
import { differences, type State } from "./state.js";
import {
  ACTORS,
  type ActorName,
  type Cast,
  openWorlds,
  type Result,
  type Step,
  type Worlds,
} from "./worlds.js";

/** Milliseconds by which an instant may differ, beyond the time of the slowest call so far in the two worlds. */
const CLOSE = 50;

/** What is known of a call of this library when it is compared. */
export interface Scene {
  readonly kind: Kind;
  readonly name: string;
  readonly call: Call;
  readonly actor: ActorName;
  readonly owner: NodeParty;
  /** The state before the call. */
  readonly before: State;
  /** Whether expired entries had been removed from that state. */
  readonly lapsed: boolean;
  /** Whether in this call the owner of both sides learns that it has lost them, since its write side was forced. */
  readonly forced: boolean;
  /** The time of the call in epoch ms. */
  readonly at: number;
  /** The result of this library. */
  readonly ours: Result;
}

/** Redisson's outcome and state, which a deliberate difference changes into those expected of this library. */
export interface Expected {
  outcome: Result["outcome"];
  state: State;
  messages: readonly string[];
}

export interface Figures {
  sequences: number;
  calls: number;
  /** How often each deliberate difference made a difference. */
  readonly deliberate: Map<string, number>;
}

/** @throws if a call has another outcome or state than with Redisson, deliberate differences aside */
export async function play(
  cast: Cast,
  kind: Kind,
  name: string,
  steps: readonly Step[],
  figures: Figures,
): Promise<void> {
  const worlds = await openWorlds(cast, kind, name);
  const sequence = new Sequence(cast, kind, name, worlds, figures);
  figures.sequences++;
  try {
    for (const step of steps) await sequence.take(step);
  } finally {
    await Promise.all([worlds.mixed.end(), worlds.redisson.end()]);
  }
}

class Sequence {
  readonly #cast: Cast;
  readonly #kind: Kind;
  readonly #name: string;
  readonly #worlds: Worlds;
  readonly #figures: Figures;
  readonly #played: string[] = [];
  #permits = 0;
  #slack = CLOSE;

  constructor(cast: Cast, kind: Kind, name: string, worlds: Worlds, figures: Figures) {
    this.#cast = cast;
    this.#kind = kind;
    this.#name = name;
    this.#worlds = worlds;
    this.#figures = figures;
  }

  async take(step: Step): Promise<void> {
    const { mixed } = this.#worlds;
    if (mixed.isWaiting(step.actor)) return;
    if (step.call.verb === "lapse") return this.#lapse(step.actor);
    await this.#compare(step, await mixed.read());
    if (step.call.verb === "forceUnlock") await sweep(this.#cast.mixed.redis, this.#name);
  }

  async #compare(step: Step, before: State): Promise<void> {
    const { mixed, redisson, nodes } = this.#worlds;
    const owner = nodes.get(step.actor)?.party;
    const alive = owner ? seenBy(step.call, before) : before;
    const lapsed = differences(before, alive, 0).length > 0;
    if (lapsed && this.#kind === "readwrite") this.#count("W25");
    const asks = step.call.verb === "tryLock" || step.call.verb === "unlock";
    const forced =
      asks &&
      owner?.holds.some(({ side, hold }) => side === "write" && hold.isHeld) === true &&
      isForced(alive, this.#name, step.actor);
    const seen = forced ? withoutForced(alive, this.#name, step.actor) : alive;
    await redisson.write(seen);
    const newPermit = `p${this.#permits}`;
    const worlds = [mixed, redisson].map((world) => world.perform(step, newPermit));
    const [ours, theirs] = (await Promise.all(worlds)) as [Result, Result];
    this.#figures.calls++;
    if (ours.outcome === newPermit) this.#permits++;
    this.#slack = Math.max(
      this.#slack,
      CLOSE + Math.max(ours.to, theirs.to) - Math.min(ours.from, theirs.from),
    );
    this.#played.push(`${step.actor} ${JSON.stringify(step.call)} -> ${JSON.stringify(ours.outcome)}`);
    if (!owner) return this.#agree(theirs, ours, before);
    const { outcome, state, messages } = structuredClone(theirs);
    const expected = { outcome, state, messages };
    const { kind, name } = { kind: this.#kind, name: this.#name };
    this.#makeDeliberate(
      { ...step, kind, name, owner, before: seen, lapsed, forced, at: ours.from, ours },
      expected,
    );
    if (lapsed) keepHash(expected.state, name, before);
    const wanted = { ...expected, state: clearedUp(expected.state) };
    this.#agree(wanted, { ...ours, state: clearedUp(ours.state) }, before);
  }

  #makeDeliberate(scene: Scene, expected: Expected): void {
    for (const [number, adjust] of Object.entries(DELIBERATE)) {
      const earlier = structuredClone(expected);
      adjust(scene, expected);
      if (this.#disagreements(earlier, expected).length > 0) this.#count(number);
    }
  }

  #agree(expected: Expected, ours: Result, before: State): void {
    const found = this.#disagreements(expected, ours);
    if (found.length === 0) return;
    const story = this.#played.join("\n  ");
    throw new Error(`${found.join("\n")}\nbefore: ${JSON.stringify(before)}\nafter\n  ${story}`);
  }

  #disagreements(expected: Expected, actual: Expected): string[] {
    const found = differences(expected.state, actual.state, this.#slack);
    const said = [actual, expected].map(({ messages }) => messages.join(", ") || "nothing");
    if (said[0] !== said[1]) found.unshift(`said ${said.join(" instead of ")}`);
    if (actual.outcome !== expected.outcome)
      found.unshift(`${actual.outcome} instead of ${expected.outcome}`);
    return found;
  }

  #count(number: string): void {
    const { deliberate } = this.#figures;
    deliberate.set(number, (deliberate.get(number) ?? 0) + 1);
  }

  async #lapse(actor: ActorName): Promise<void> {
    const isAwaited = ACTORS.some((each) => this.#worlds.mixed.isWaiting(each));
    if (this.#kind === "permits") await lapsePermit(this.#cast, this.#name);
    // A lapse is left out while a call waits: no message would tell the call of the earlier end.
    else if (!isAwaited) await lapse(this.#cast, this.#name, actor);
  }
}

/** Lets time pass for the keys of read holds that Redisson's force-unlock leaves to expire by themselves. */
async function sweep(redis: Redis, name: string): Promise<void> {
  if ((await redis.exists(name)) === 1) return;
  const left = (await redis.keys(`*${name}*`)).filter((key) => READER.test(key));
  if (left.length > 0) await redis.del(...left);
}

/** Lets time pass for all holders, or for one Java reader, which is then dead for the others. */
async function lapse({ mixed: { redis: mixed }, java }: Cast, name: string, which: string): Promise<void> {
  const keys = (await mixed.keys(`*${name}*`)).filter((key) => key === name || READER.test(key));
  const readers = new Set(
    keys.flatMap((key) => READER.exec(key)?.[0] ?? []).filter((key) => key.includes(java.id)),
  );
  // Every key starts with the empty text, which stands for all holders.
  const holders = ["", ...[...readers].sort()];
  const holder = holders[which.charCodeAt(which.length - 1) % holders.length] ?? "";
  for (const key of keys.filter((each) => each.startsWith(holder))) {
    await mixed.pexpire(key, 1);
    await until(`${key} is gone`, async () => (await mixed.exists(key)) === 0, { every: 1 });
  }
}

/** Ends the oldest permit's lease. */
async function lapsePermit({ mixed: { redis: mixed } }: Cast, name: string): Promise<void> {
  const key = `{${name}}:timeout`;
  const [oldest] = await mixed.zrangeBuffer(key, "0", "0");
  if (oldest) await mixed.zadd(key, "XX", String(Date.now() - 1_000), oldest);
}

/** The common beginning of the keys of one reader's holds. */
const READER = /^.*:rwlock_timeout:/;
