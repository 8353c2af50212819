/** One history: what owners do at random, what is checked after each step, and what is left at the end. */
import { Client, type Grant, type Hold, Owner, type WireId } from "./client.js";
import { Group, type Member } from "./groups.js";
import { type Edit, type Kind, Lock, type Side } from "./lock.js";
import { LATEST, POLL, World } from "./world.js";

export type Mode = Kind | "red" | "multi";
const MODES: readonly Mode[] = [
  "plain",
  "fenced",
  "fair",
  "readwrite",
  "readwrite",
  "readwrite",
  "red",
  "multi",
];

export interface Manner {
  readonly mode?: Mode | undefined;
  /** A mistake in the rules of the clients. */
  readonly mistake?: string | undefined;
  readonly edit?: Edit | undefined;
}

/** What the members of groups are. */
const KINDS: Partial<Record<Mode, readonly Kind[]>> = {
  red: ["plain", "plain", "plain"],
  multi: ["plain", "readwrite", "fair"],
};
const STEPS = 40;
const [LONG_TTL, SHORT_TTL] = [20_000, 60];
const [LEASES, LONGEST] = [[20, 60, 150], 2_000];
/** A message needs less than so much. */
const SOON = 6;
/** A timer may come late by so much. */
const LAG = 3;

class History {
  readonly world: World;
  readonly #mode: Mode;
  readonly #locks: readonly Lock[];
  readonly #clients: readonly Client[];
  readonly #ids = new Map<string, WireId>();
  readonly #holds = new Map<Owner, Hold[]>();
  readonly #groups = new Set<Group>();
  /** Late commands may be older than tombstones. */
  readonly #hasGhosts: boolean;
  readonly #hasForce: boolean;
  readonly #hasReaders: boolean;
  readonly #leases: readonly number[];
  /** Since when a side has been free. */
  readonly #freeSince = new Map<string, number>();
  /** How many commands each lock had executed when it was looked at. */
  readonly #looked = new Map<Lock, number>();

  constructor(seed: number, manner: Manner, steps?: string[]) {
    this.world = new World(seed, manner.mistake, steps);
    const { random } = this.world;
    const mode = random.pick(MODES);
    this.#mode = manner.mode ?? mode;
    const isGroup = this.#mode === "red" || this.#mode === "multi";
    this.#hasGhosts = random.chance(0.15);
    this.#hasForce = random.chance(0.3);
    this.#hasReaders = random.chance(0.75);
    this.#leases = this.#hasGhosts ? LEASES : [...LEASES, LONGEST];
    const hasReplicas = random.chance(0.1);
    const kinds = KINDS[this.#mode] ?? [this.#mode as Kind];
    const settings = {
      tombstoneTtl: this.#hasGhosts ? SHORT_TTL : LONG_TTL,
      edit: manner.edit,
    };
    this.#locks = kinds.map((kind, i) => new Lock("abc"[i] as string, { ...settings, kind }, this.world));
    this.#clients = Array.from(
      { length: 2 + random.below(2) },
      (_, i) => new Client(this.world, i, this.#ids),
    );
    for (const client of this.#clients) {
      client.hasReplicas = hasReplicas && !isGroup;
      for (let i = 2 + random.below(2); i > 0; i--) client.owners.push(new Owner(client));
    }
    this.world.note(
      () => `${this.#mode}${this.#hasGhosts ? ", with ghosts" : ""}${hasReplicas ? ", with replicas" : ""}`,
    );
  }

  play(): string | undefined {
    const { world } = this;
    const check = () => this.#check();
    for (let step = 0; step < STEPS && world.failure === undefined; step++) {
      this.#act(world.random.pick(world.random.pick(this.#clients).owners));
      check();
      world.run(world.now + world.random.below(8), check);
    }
    if (world.failure !== undefined) return world.failure;
    this.#giveAllBack();
    const after = (ms: number) => world.run(world.now + ms, check);
    after(2 * LATEST);
    // With ghosts a hold or a ticket of nobody may stay as long as it would live.
    if (this.#hasGhosts) after(LATEST + (LEASES.at(-1) ?? 0));
    for (const lock of this.#locks) this.#checkLeft(lock, lock.sides());
    after(60_000);
    for (const lock of this.#locks) if (!this.#hasGhosts) this.#checkLeft(lock, lock.leftovers());
    return world.failure;
  }

  #checkLeft(lock: Lock, left: readonly string[]): void {
    const all = this.#hasGhosts ? left : [...left, ...lock.queue];
    if (all.length > 0) this.world.fail(`[left] ${lock.name}: ${all.join(", ")}`);
  }

  // What owners do

  #act(owner: Owner): void {
    const { world } = this;
    const { random } = world;
    const lease = random.pick(this.#leases);
    const choice = random.below(20);
    const grants = [...owner.grants.values()];
    const grant = grants.length > 0 ? random.pick(grants) : undefined;
    if (choice < 8) this.#lock(owner, lease);
    else if (choice < 14) this.#unlock(owner);
    else if (choice < 16) grant && owner.client.renew(grant, lease);
    else if (choice < 17) grant && owner.client.cut(grant, world.now + random.below(60));
    else if (choice < 18) this.#abort(owner);
    else if (this.#hasForce) this.#force(owner.client, random.pick(this.#locks));
  }

  #lock(owner: Owner, lease: number): void {
    const { random } = this.world;
    if (owner.calls.size > 3) return;
    if (this.#locks.length > 1 && random.chance(0.6)) {
      const isBusy = [...this.#groups].filter((each) => each.owner === owner).length > 1;
      if (!isBusy)
        this.#groups.add(new Group(this.world, owner, this.#members(), this.#mode === "red", lease));
      return;
    }
    const lock = random.pick(this.#locks);
    const isWriter = (owner.grants.get(lock)?.count.write ?? 0) > 0;
    const reads = this.#hasReaders ? (isWriter ? 0.7 : 0.5) : 0;
    const side: Side = lock.kind === "readwrite" && random.chance(reads) ? "read" : "write";
    const isWaiting = random.chance(0.7);
    const done = (_outcome: unknown, hold?: Hold) => hold && this.#holdsOf(owner).push(hold);
    owner.client.lock(owner, { lock, side, lease, isWaiting, done });
  }

  #members(): Member[] {
    const members = this.#locks.map((lock): Member => ({ lock, side: "write" }));
    const [, second] = this.#locks;
    if (this.#mode === "multi" && second && this.world.random.chance(0.5))
      members.splice(2, 0, { lock: second, side: "read" });
    return members;
  }

  #holdsOf(owner: Owner): Hold[] {
    const holds = this.#holds.get(owner) ?? [];
    this.#holds.set(owner, holds);
    return holds;
  }

  #unlock(owner: Owner): void {
    const { random } = this.world;
    const groups = [...this.#groups].filter((each) => each.owner === owner && each.state !== "trying");
    if (groups.length > 0 && random.chance(0.7)) return random.pick(groups).end();
    // Downgrades are what a writer can do wrong.
    const holds = this.#holdsOf(owner);
    const write = holds.findIndex(({ side }) => side === "write");
    const [hold] = holds.splice(write >= 0 && random.chance(0.6) ? write : random.below(holds.length), 1);
    if (hold) owner.client.unlock(hold);
  }

  #abort(owner: Owner): void {
    const { random } = this.world;
    for (const group of this.#groups)
      if (group.owner === owner && group.state === "trying") return group.end();
    const calls = [...owner.calls];
    if (calls.length > 0) owner.client.abort(random.pick(calls));
  }

  #force(client: Client, lock: Lock): void {
    const { random } = this.world;
    if (random.chance(0.7))
      return client.force(lock, lock.kind === "readwrite" && random.chance(0.5) ? "read" : "write");
    this.world.note(() => `another program deletes ${lock.name}`);
    lock.delete();
    this.world.count("deleted");
  }

  #giveAllBack(): void {
    for (const group of this.#groups) group.end();
    for (const { owners } of this.#clients)
      for (const owner of owners) for (const call of [...owner.calls]) owner.client.abort(call);
    for (const [owner, holds] of this.#holds) for (const hold of holds.splice(0)) owner.client.unlock(hold);
    for (const client of this.#clients)
      for (const grant of client.grants) this.world.fail(`[left] ${grant.id.name} is still held`);
  }

  // What is checked

  #check(): void {
    const { world } = this;
    if (world.failure !== undefined) return;
    for (const client of this.#clients) {
      for (const grant of client.grants) if (world.now >= grant.deadline + LAG) client.expire(grant);
    }
    for (const lock of this.#locks) {
      this.#checkHolders(lock);
      this.#checkWaiters(lock);
      if (this.#looked.get(lock) !== lock.executed) this.#checkNobody(lock);
      this.#looked.set(lock, lock.executed);
    }
    this.#checkGroups();
  }

  /** Who believes to hold, by its own clock, does; and alone. */
  #checkHolders(lock: Lock): void {
    const { world } = this;
    const holders: Record<Side, Set<Grant>> = { read: new Set(), write: new Set() };
    for (const client of this.#clients) {
      for (const grant of client.grants) {
        if (grant.id.lock !== lock) continue;
        if (grant.id.owner.grants.get(lock) !== grant)
          world.fail(`[one] ${grant.id.name} is not the only grant of its owner`);
        if (world.now >= grant.deadline) grant.hasLapsed = true;
        else if (grant.hasLapsed) world.fail(`[final] ${grant.id.name} is held again`);
        else if (!this.#isExcused(lock, grant.id.name)) holders[this.#checkHolder(lock, grant)].add(grant);
        if (client.forced.has(grant.id.name) && grant.count.write > 0)
          world.fail(`[force] ${grant.id.name} goes on, though its own client has forced it`);
      }
    }
    const [writer, other] = [...holders.write, ...holders.read];
    if (holders.write.size > 0 && other)
      world.fail(`[exclusion] ${writer?.id.name} writes, and so does or reads ${other.id.name}`);
  }

  #checkHolder(lock: Lock, { id: { name }, count, deadline }: Grant): Side {
    const writes = lock.has(name, "write");
    if (count.write > 0 ? !writes : !writes && !lock.has(name, "read"))
      this.world.fail(
        `[exclusion] ${name} believes to hold ${lock.name} until ${deadline}, the server does not know it`,
      );
    return count.write > 0 ? "write" : "read";
  }

  /** What others have taken away is unknown to its holder until an answer tells. */
  #isExcused(lock: Lock, w: string): boolean {
    return [w, lock.sideId(w, "write")].some((id) => lock.forced.has(id) || lock.deleted.has(id));
  }

  /** What is on the server is somebody's. */
  #checkNobody(lock: Lock): void {
    if (this.#hasGhosts) return;
    for (const side of [...lock.sides(), ...lock.queue, ...lock.writers]) {
      const id = this.#ids.get(side.replace(/:write$/, ""));
      if (!id) this.world.fail(`[nobody] ${side} is unknown`);
      else if (id.isOver && id.ends === 0) this.world.fail(`[nobody] ${side} is nobody's`);
    }
  }

  /** No waiter sleeps for long beside a free lock. */
  #checkWaiters(lock: Lock): void {
    const { world } = this;
    for (const side of lock.kind === "readwrite" ? (["read", "write"] as const) : (["write"] as const)) {
      const key = `${lock.name} ${side}`;
      if (!lock.isFree(side)) this.#freeSince.delete(key);
      else if (!this.#freeSince.has(key)) this.#freeSince.set(key, world.now);
    }
    for (const client of this.#clients) {
      const site = client.sites.get(lock);
      const [first] = site?.queue ?? [];
      if (!first || first.isInFlight) continue;
      if (site?.asleepSince === undefined) {
        if (first.state === "asleep") world.fail(`[idle] ${first.id.name} sleeps for ever`);
        continue;
      }
      const free = this.#freeSince.get(`${lock.name} ${first.wish.side}`);
      const isNext = lock.kind !== "fair" || site.queue.some(({ id }) => id.name === lock.queue[0]);
      if (free !== undefined && isNext && world.now - Math.max(free, site.asleepSince) > POLL + LAG)
        world.fail(`[idle] ${first.id.name} sleeps beside a free lock`);
      const isTold =
        lock.kind !== "fair" && free === lock.freedAt && site.asleepSince < free && site.missedAt < free;
      if (isTold && free !== undefined && world.now - free > SOON)
        world.fail(`[idle] ${first.id.name} has not been told`);
    }
  }

  #checkGroups(): void {
    const { world } = this;
    let held: Group | undefined;
    for (const group of this.#groups) {
      if (group.state === "over") this.#groups.delete(group);
      if (group.state !== "held") continue;
      if (world.now >= group.deadline) {
        group.end();
        continue;
      }
      if (group.deadlineOf((grant) => !this.#isExcused(grant.id.lock, grant.id.name)) <= world.now) continue;
      if (held && held.owner !== group.owner) world.fail("[exclusion] two owners hold the same group");
      held = group;
    }
  }
}

export interface Result {
  readonly failure: string | undefined;
  readonly figures: Readonly<Record<string, number>>;
  readonly steps: readonly string[];
}

/** Plays the history of a seed; with `isTold` it tells each step. */
export function play(seed: number, manner: Manner = {}, isTold = false): Result {
  const steps: string[] = [];
  const history = new History(seed, manner, isTold ? steps : undefined);
  const failure = history.play();
  return { failure, figures: history.world.figures, steps };
}

/** How a failure is told: its seed, and its last steps. */
export function tell(seed: number, manner: Manner = {}): string {
  const { failure, steps } = play(seed, manner, true);
  return [`seed ${seed}: ${failure}`, ...steps.slice(-30)]
    .join("\n")
    .replaceAll("-0000-4000-8000-000000000000", "");
}
