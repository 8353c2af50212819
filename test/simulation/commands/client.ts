/**
 * The rules of a client: what its owners' calls send, and what they make of the answers. Nothing of the library is in
 * here but its scripts: this is the text that the library has to agree with.
 *
 * A wire id belongs to one call. It is over when its call ends otherwise than by its own grant, or when its grant ends;
 * then its END is sent. An owner has at most one grant of a lock; nested calls count from the moment they are made.
 */
import type { Command, Lock, Side } from "./lock.js";
import { type Heard, type Listener, POLL, TIMEOUT, type World } from "./world.js";

/** What became of a call: it has its hold, others have the lock, or it failed. */
export type Outcome = "granted" | "refused" | "silent" | "failed";
export type Done = (outcome: Outcome, hold?: Hold) => void;

/** Nothing comes of silence. */
const silent = () => undefined;

/** Each process hands the lock on for so long, then it lets others have it. */
const TURN = 150;

export class WireId {
  readonly name: string;
  readonly owner: Owner;
  readonly lock: Lock;
  isSent = false;
  isOver = false;
  /** Its own channel, of a fair lock, is subscribed. */
  isHeard = false;
  grant: Grant | undefined;
  /** Tries without an answer so far, and ENDs. */
  tries = 0;
  ends = 0;

  constructor(name: string, owner: Owner, lock: Lock) {
    this.name = name;
    this.owner = owner;
    this.lock = lock;
  }
}

export class Owner {
  readonly client: Client;
  readonly grants: Map<Lock, Grant> = new Map();
  readonly calls: Set<Call> = new Set();

  constructor(client: Client) {
    this.client = client;
  }

  /** What it has of a lock. */
  grantOf(lock: Lock): Grant | undefined {
    const grant = this.grants.get(lock);
    if (grant) this.client.expire(grant);
    return this.grants.get(lock);
  }
}

export interface Wish {
  readonly lock: Lock;
  readonly side: Side;
  readonly lease: number;
  readonly isWaiting: boolean;
  /** A seat of a RedLock: a grant that comes late is still wanted. */
  readonly joinsLate?: boolean;
  readonly done: Done;
}

export class Call {
  readonly owner: Owner;
  readonly wish: Wish;
  id: WireId;
  state: "trying" | "asleep" | "nested" | "over" = "trying";
  isInFlight = false;
  isQueued = false;
  isStirred = false;
  /** Asks again when its owner's other id is answered; until then it is neither refused nor granted. */
  isInDoubt = false;
  nestedIn: Grant | undefined;
  /** The id of its owner that has refused it last. */
  refusedBy: WireId | undefined;

  constructor(owner: Owner, wish: Wish, id: WireId) {
    this.owner = owner;
    this.wish = wish;
    this.id = id;
  }
}

export class Grant {
  readonly id: WireId;
  state: "held" | "over" = "held";
  deadline: number;
  /** Commands sent before this moment do not raise the deadline: it was cut then. */
  cutAt = -1;
  /** Holds and nested calls on their way. */
  readonly count: Record<Side, number> = { read: 0, write: 0 };
  hasRead: boolean;
  /** What END found; undefined before its answer. */
  found: number | undefined;
  readonly onEnd: (() => void)[] = [];
  /** Its last hold was given back. */
  isGivenBack = false;
  /** The deadline has been seen to pass. */
  hasLapsed = false;

  constructor(id: WireId, side: Side, deadline: number) {
    this.id = id;
    this.deadline = deadline;
    this.count[side] = 1;
    this.hasRead = side === "read";
  }

  get total(): number {
    return this.count.read + this.count.write;
  }

  /** Whether END found what its owner gave back. */
  isGood(needsWrite: boolean): boolean {
    return (Math.max(0, this.found ?? 0) & (needsWrite ? 2 : 3)) > 0;
  }
}

export interface Hold {
  readonly grant: Grant;
  readonly side: Side;
}

/** Who waits in one process for one lock: the first of them sleeps or tries. */
class Site {
  readonly queue: Call[] = [];
  /** Since when nobody tries; and the number of the timer that is to wake the first. */
  asleepSince: number | undefined;
  timer = 0;
  turnSince = 0;
  isHeard = false;
  /** When a message got lost. */
  missedAt = -1;

  wake(): void {
    this.asleepSince = undefined;
    this.timer++;
  }
}

export class Client {
  readonly world: World;
  readonly name: string;
  readonly owners: Owner[] = [];
  readonly grants: Set<Grant> = new Set();
  readonly sites: Map<Lock, Site> = new Map();
  readonly ids: Map<string, WireId>;
  /** Ids that this client has forced itself. */
  readonly forced: Set<string> = new Set();
  readonly #uuid: string;
  readonly #givenUp = new Map<Lock, WireId[]>();
  /** Grants are known only when replicas have them. */
  hasReplicas = false;

  constructor(world: World, number: number, ids: Map<string, WireId>) {
    this.world = world;
    this.name = `p${number}`;
    this.ids = ids;
    this.#uuid = `0000000${number}-0000-4000-8000-000000000000`;
  }

  // Calls

  lock(owner: Owner, wish: Wish): Call {
    const call = new Call(owner, wish, this.#mint(owner, wish.lock));
    owner.calls.add(call);
    this.world.count("calls");
    const { lock, side, lease, isWaiting } = wish;
    const what = `${isWaiting ? "lock" : "tryLock"} ${lock.name} ${side} ${lease}`;
    this.world.note(() => `${this.name}/${this.owners.indexOf(owner)} ${what}`);
    this.#begin(call);
    return call;
  }

  #mint(owner: Owner, lock: Lock): WireId {
    const id = new WireId(`${this.#uuid}:${this.ids.size + 1}`, owner, lock);
    this.ids.set(id.name, id);
    return id;
  }

  #begin(call: Call): void {
    const { lock, isWaiting } = call.wish;
    const grant = call.owner.grantOf(lock);
    if (grant) return this.#reenter(call, grant);
    const queue = this.#site(lock).queue;
    if (isWaiting && lock.kind !== "fair" && queue.length > 0 && !call.isQueued) this.#sleep(call, POLL);
    else this.#attempt(call);
  }

  #attempt(call: Call): void {
    const { id, owner } = call;
    const { lock, side, lease, isWaiting } = call.wish;
    const site = this.#site(lock);
    call.state = "trying";
    call.isInFlight = id.isSent = true;
    call.isInDoubt = call.isStirred = false;
    id.tries++;
    const isFirst = site.queue[0] === call;
    if (isFirst) site.wake();
    const others = isFirst ? site.queue.slice(1).filter((each) => each.id.isSent) : [];
    const sentAt = this.world.now;
    const coWaiters = others.map((each) => each.id.name);
    this.#send(lock, lock.take(id.name, side, lease, isWaiting, coWaiters), {
      answered: (heard, isLate) => {
        id.tries--;
        this.#taken(call, id, sentAt, heard, isLate);
        for (const i of heard.stirred ?? []) if (others[i]) this.#hint(others[i]);
        this.#answered(owner);
      },
      silent: () => this.#unanswered(call, id),
    });
  }

  #unanswered(call: Call, id: WireId): void {
    if (call.id !== id) return;
    call.isInFlight = false;
    if (call.state === "over" || call.state === "nested") return;
    if (call.isQueued) this.#sleep(call, 1 + this.world.random.below(POLL));
    else if (call.wish.joinsLate) call.wish.done("silent");
    else this.#close(call, "failed");
  }

  /** An answer belongs to its own send, and to the state of the wire id. */
  #taken(call: Call, id: WireId, sentAt: number, heard: Heard, isLate: boolean): void {
    const { world } = this;
    if (!isLate && call.id === id) call.isInFlight = false;
    if (id.isOver) {
      if (heard.is === "granted") this.#end([id]);
    } else if (id.grant) {
      if (isLate && world.errs("a late grant ends a live hold")) this.#end([id]);
    } else if (isLate && !call.wish.joinsLate) {
      if (heard.is !== "granted") return;
      if (world.errs("a late answer counts from now"))
        this.#granted(call, id, world.now + call.wish.lease, heard);
      else this.#hint(call);
    } else if (heard.is === "granted") {
      const start = world.errs("deadlines count from the answer") ? world.now : sentAt;
      this.#granted(call, id, start + call.wish.lease, heard);
    } else if (heard.is === "over") this.#again(call);
    else this.#refused(call, heard);
  }

  /** The id was ended by force, or its grant came too late. Who had waited goes on with a fresh id. */
  #again(call: Call): void {
    this.#giveUp(call.id);
    call.id = this.#mint(call.owner, call.wish.lock);
    this.#begin(call);
  }

  #refused(call: Call, { holder = "", ms = 0 }: Heard): void {
    const other = this.ids.get(holder);
    const isOwn = other?.owner === call.owner && other !== call.id;
    if (call.wish.isWaiting) return this.#sleep(call, Math.max(1, ms));
    // A refusal by an id of its own owner that is on its way is none. A copy of a try that was answered before may have
    // granted one that waits. It tries at once, and is believed when it refuses again. One that is over ends again.
    if (isOwn && !this.world.errs("believes a refusal by its own owner")) {
      const isOnItsWay = other.tries > 0 || other.ends > 0 || other.grant?.state === "held";
      if (isOnItsWay) return this.#doubt(call);
      if (call.refusedBy !== other) {
        if (other.isOver) this.#end([other]);
        else this.#hint([...call.owner.calls].find(({ id }) => id === other));
        call.refusedBy = other;
        return this.#doubt(call);
      }
    }
    if (isOwn && call.refusedBy !== other && call.wish.lock.sides().some((id) => id.startsWith(holder)))
      this.world.fail(`[null] ${call.id.name} is refused by ${holder} of its own owner`);
    this.#close(call, "refused");
  }

  #doubt(call: Call): void {
    call.isInDoubt = true;
    this.world.count("in doubt");
    const { id } = call;
    this.world.after(TIMEOUT, () => {
      if (call.isInDoubt && call.id === id && call.state === "trying") this.#close(call, "failed");
    });
  }

  #answered(owner: Owner): void {
    for (const call of [...owner.calls]) if (call.isInDoubt && call.state === "trying") this.#begin(call);
  }

  #granted(call: Call, id: WireId, deadline: number, heard: Heard): void {
    const { world } = this;
    const wait = this.hasReplicas ? 1 + world.random.below(60) : 0;
    if (wait === 0) return this.#admit(call, id, deadline, heard);
    call.isInFlight = true;
    id.tries++;
    world.after(wait, () => {
      id.tries--;
      if (call.id === id) call.isInFlight = false;
      const isShort = world.random.chance(0.2);
      world.note(() => `${this.name}: ${id.name} is ${isShort ? "not " : ""}on the replicas`);
      if (id.isOver) this.#end([id]);
      else if (!isShort) this.#admit(call, id, deadline, heard);
      else this.#close(call, "failed");
    });
  }

  #admit(call: Call, id: WireId, deadline: number, heard: Heard): void {
    const { world } = this;
    const { lock, side } = call.wish;
    const { owner } = call;
    const other = owner.grantOf(lock);
    if (other && !world.errs("has two grants of a lock")) return this.#reenter(call, other);
    if (world.now >= deadline || (this.forced.has(id.name) && !world.errs("forgets what it forced")))
      return call.isQueued ? this.#again(call) : this.#close(call, "failed");
    world.count("grants");
    if (id.grant) world.fail(`[final] ${id.name} was granted before`);
    if (lock.kind === "fenced" && !lock.isTokenOf(id.name, heard.token))
      world.fail(`[token] ${id.name} was told ${heard.token}`);
    const grant = new Grant(id, side, deadline);
    id.grant = grant;
    owner.grants.set(lock, grant);
    this.grants.add(grant);
    this.#site(lock).turnSince = world.now;
    this.#leave(call);
    this.#over(call);
    call.wish.done("granted", { grant, side });
    if (world.errs("has two grants of a lock")) return;
    for (const each of [...owner.calls])
      if (each.wish.lock === lock && each.state !== "nested") this.#reenter(each, grant);
  }

  /** The call goes on as a nested one; its own id ends. */
  #reenter(call: Call, grant: Grant): void {
    const { world } = this;
    const { lock, side, lease, done } = call.wish;
    this.#leave(call);
    if (!world.errs("an id that re-entered is not ended")) this.#giveUp(call.id);
    call.id.isOver = true;
    if (side === "write" && grant.count.write === 0) return this.#close(call, "failed");
    call.state = "nested";
    call.isInDoubt = false;
    call.nestedIn = grant;
    world.count("nested");
    const countsLate = world.errs("counts at the answer");
    if (!countsLate) grant.count[side]++;
    if (side === "read") grant.hasRead = true;
    const sentAt = world.now;
    const isTake = side === "read" && grant.count.read === 1 && world.errs("a nested read is a TAKE");
    const command = isTake
      ? lock.take(grant.id.name, side, lease, false)
      : lock.keep(grant.id.name, lease, grant.count);
    this.#send(lock, command, {
      answered: (heard, isLate) => {
        const found = isTake ? { ...heard, found: heard.is === "granted" ? 3 : 0 } : heard;
        const isHeld = this.#learn(grant, found, sentAt + lease, sentAt);
        if (isLate || call.state === "over") return;
        this.#over(call);
        if (!isHeld && grant.isGivenBack)
          world.fail(`[nested] a call is refused by ${grant.id.name}, which it was made before the end of`);
        if (!isHeld) return done("failed");
        if (countsLate) grant.count[side]++;
        done("granted", { grant, side });
      },
      silent: () => {
        if (call.state !== "over") this.abort(call);
      },
    });
  }

  /** Ends a call that is not granted. */
  abort(call: Call, outcome: Outcome = "failed"): void {
    const { nestedIn, wish, state } = call;
    if (state === "over") return;
    this.world.note(() => `${this.name} ends a call (${state}) ${call.id.name}`);
    if (state !== "nested") return this.#close(call, outcome);
    this.#over(call);
    if (nestedIn && !this.world.errs("counts at the answer")) this.#giveBack(nestedIn, wish.side);
    wish.done(outcome);
  }

  #close(call: Call, outcome: Outcome): void {
    this.#leave(call);
    this.#over(call);
    if (!this.world.errs("a call that was given up is not ended")) this.#giveUp(call.id);
    call.id.isOver = true;
    call.wish.done(outcome);
  }

  #over(call: Call): void {
    call.state = "over";
    call.isInDoubt = false;
    call.owner.calls.delete(call);
  }

  /** Ends an id that has no grant. Those that are given up within some milliseconds end by one command. */
  #giveUp(id: WireId): void {
    const isDone = id.isOver || !id.isSent;
    id.isOver = true;
    if (isDone) return;
    const ids = this.#givenUp.get(id.lock) ?? [];
    this.#givenUp.set(id.lock, [...ids, id]);
    id.ends++;
    if (ids.length > 0) return;
    this.world.after(this.world.random.below(3), () => {
      const all = this.#givenUp.get(id.lock) ?? [];
      this.#givenUp.delete(id.lock);
      for (const each of all) each.ends--;
      this.#end(all);
    });
  }

  // Grants

  unlock({ grant, side }: Hold): void {
    this.expire(grant);
    this.world.note(() => `${this.name} unlocks ${side} of ${grant.id.name} (${grant.state})`);
    if (grant.state === "held") this.#giveBack(grant, side, side);
  }

  /** `told`: the side whose unlock waits for the outcome. */
  #giveBack(grant: Grant, side: Side, told?: Side): void {
    if (grant.state !== "held") return;
    grant.count[side]--;
    const { id, count } = grant;
    if (grant.total === 0) return this.#finish(grant, told);
    const isDowngrade = side === "write" && count.write === 0;
    const [needsWrite, sentAt] = [told === "write" || count.write > 0, this.world.now];
    const listener = {
      answered: (heard: Heard, isLate: boolean) => {
        // A repeated downgrade tells what the first one found, a repeated KEEP what it finds itself.
        this.#learn(grant, isDowngrade ? { ...heard, seen: undefined } : heard, 0, sentAt);
        const first = isDowngrade ? heard.first : heard.seen;
        if (told && !isLate) this.#outcome(grant, needsWrite, { ...heard, first }, sentAt);
      },
    };
    const left = Math.max(1, grant.deadline - this.world.now);
    if (isDowngrade) this.#send(id.lock, id.lock.downgrade(id.name, count.read, left), listener);
    else this.#send(id.lock, id.lock.keep(id.name, left, count), { ...listener, silent });
  }

  /** The answer to an unlock that was not the last; behind its own END it takes what END found. */
  #outcome(grant: Grant, needsWrite: boolean, heard: Heard, sentAt: number): void {
    const isGood = (Math.max(0, heard.found ?? 0) & (needsWrite ? 2 : 3)) > 0;
    const judge = () => {
      // A late copy of its TAKE had brought back what had lapsed, and its own END has found that: none of it was lost here.
      const isBack = !isGood && heard.first?.isOver === false && grant.isGood(needsWrite);
      if (!isBack) this.#judge(grant, needsWrite, heard, sentAt, isGood || grant.isGood(needsWrite));
    };
    const isEnding = grant.state === "over" && grant.found === undefined && grant.id.ends > 0;
    if (!isGood && isEnding && !this.world.errs("does not wait for its END")) grant.onEnd.push(judge);
    else judge();
  }

  /** Compares what an unlock is told with the truth. */
  #judge(grant: Grant, needsWrite: boolean, { first }: Heard, sentAt: number, isGood: boolean): void {
    const { world } = this;
    // What is not found after a tombstone's life counts as done, not as lost.
    if (!first || first.isDeleted || world.now - sentAt >= grant.id.lock.tombstoneTtl) return;
    const isTrue = needsWrite ? first.writes : first.reads || first.writes;
    world.count(isGood ? "unlocked" : "unlocks told of a loss");
    const compare = () => {
      const truth = first.isOver ? grant.isGood(needsWrite) : isTrue;
      if (isGood !== truth)
        world.fail(`[verdict] the unlock of ${grant.id.name} is told ${isGood}, the truth was ${truth}`);
    };
    // If its own END was executed first, that one knows.
    if (first.isOver && grant.found === undefined) grant.onEnd.push(compare);
    else compare();
  }

  /** Takes in an answer to KEEP, whenever it comes; returns whether the grant is held. */
  #learn(grant: Grant, { found = 0, seen }: Heard, deadline: number, sentAt: number): boolean {
    const { world } = this;
    if (!world.errs("believes answers after the deadline")) this.expire(grant);
    if (grant.state !== "held") return false;
    const enough = grant.count.write > 0 && !world.errs("any side is as good") ? 2 : 3;
    if (found <= 0 || (found & enough) === 0) this.#lose(grant);
    else if (sentAt > grant.cutAt) grant.deadline = Math.max(grant.deadline, deadline);
    const isKnown = seen && !seen.isDeleted && !(seen.writes || (grant.count.write === 0 && seen.reads));
    if (isKnown && grant.state === "held")
      world.fail(`[told] ${grant.id.name} goes on, though it was told of its loss`);
    return grant.state === "held";
  }

  renew(grant: Grant, lease: number): void {
    const { lock, name } = grant.id;
    const sentAt = this.world.now;
    this.#send(lock, lock.keep(name, lease), {
      answered: (heard) => this.#learn(grant, heard, sentAt + lease, sentAt),
      silent,
    });
  }

  /** Lets a grant end sooner: here at once, there when it is given back. */
  cut(grant: Grant, deadline: number): void {
    this.world.note(() => `${this.name} cuts ${grant.id.name} to ${deadline}`);
    grant.deadline = Math.min(grant.deadline, deadline);
    grant.cutAt = this.world.now;
  }

  expire(grant: Grant): void {
    if (grant.state === "held" && this.world.now >= grant.deadline) this.#lose(grant);
  }

  #lose(grant: Grant): void {
    if (grant.state !== "held") return;
    this.world.count("lost");
    this.world.note(() => `${this.name} loses ${grant.id.name}`);
    this.#drop(grant);
    if (!this.world.errs("what is lost is not ended")) this.#end([grant.id], grant);
    grant.id.isOver = true;
  }

  #drop(grant: Grant): void {
    grant.state = "over";
    this.grants.delete(grant);
    const { owner, lock } = grant.id;
    if (owner.grants.get(lock) === grant) owner.grants.delete(lock);
  }

  /** The last hold is given back: to the first that waits here, or to whoever comes. */
  #finish(grant: Grant, told: Side | undefined): void {
    const { id } = grant;
    const { lock } = id;
    const site = this.#site(lock);
    const [first] = site.queue;
    this.#drop(grant);
    grant.isGivenBack = true;
    const isTurn = this.world.now - site.turnSince < TURN;
    const maySucceed = first && first.state === "asleep" && !first.isInFlight && first.wish.side === "write";
    if (maySucceed && isTurn && lock.kind !== "fair" && !this.hasReplicas && !grant.hasRead)
      this.#pass(grant, first, told);
    else this.#end([id], grant, told);
  }

  #end(ids: readonly WireId[], grant?: Grant, told?: Side): void {
    const [first] = ids;
    if (!first) return;
    const { lock } = first;
    for (const id of ids) {
      id.isOver = true;
      id.ends++;
    }
    const sentAt = this.world.now;
    const names = ids.map(({ name }) => name);
    this.#send(lock, lock.end(names, this.#nextWriter(lock, first)), {
      answered: (heard) => {
        for (const id of ids) id.ends--;
        if (grant) this.#ended(grant, heard, told, sentAt);
        for (const id of ids) this.#answered(id.owner);
      },
    });
  }

  /** The writer that comes next in this process. */
  #nextWriter(lock: Lock, but: WireId): string | undefined {
    return this.#site(lock).queue.find(({ id, wish }) => wish.side === "write" && id.isSent && id !== but)?.id
      .name;
  }

  #ended(grant: Grant, heard: Heard, told: Side | undefined, sentAt: number): void {
    grant.found ??= heard.found ?? 0;
    for (const each of grant.onEnd.splice(0)) each();
    const needsWrite = told === "write";
    if (told) this.#judge(grant, needsWrite, heard, sentAt, grant.isGood(needsWrite));
  }

  #pass(grant: Grant, call: Call, told: Side | undefined): void {
    const { world } = this;
    const { lock } = grant.id;
    const { id: successor, wish } = call;
    const site = this.#site(lock);
    world.count("passes");
    grant.id.isOver = true;
    grant.id.ends++;
    successor.tries++;
    call.isInFlight = successor.isSent = true;
    site.wake();
    let isOpen = true;
    const sentAt = world.now;
    world.after(TIMEOUT, () => {
      if (!isOpen) return;
      isOpen = false;
      if (call.id !== successor || call.state === "over" || call.state === "nested") return;
      call.isInFlight = false;
      this.#attempt(call);
    });
    const next = this.#nextWriter(lock, successor);
    this.#send(lock, lock.pass(grant.id.name, successor.name, wish.lease, next), {
      answered: (heard) => {
        const wasOpen = isOpen;
        isOpen = false;
        grant.id.ends--;
        successor.tries--;
        this.#ended(grant, heard, told, sentAt);
        if (wasOpen && call.id === successor) call.isInFlight = false;
        if (heard.has) this.#taken(call, successor, sentAt, { ...heard, is: "granted" }, !wasOpen);
        else if (call.id === successor && !successor.isOver && !successor.grant) this.#hint(call);
        this.#answered(grant.id.owner);
        this.#answered(successor.owner);
      },
    });
  }

  force(lock: Lock, side: Side): void {
    this.world.note(() => `${this.name} forces ${lock.name} ${side}`);
    this.#send(lock, lock.force(side), {
      answered: ({ ids = [] }) => {
        for (const name of ids) {
          const id = this.ids.get(name.replace(/:write$/, ""));
          if (id?.owner.client !== this) continue;
          this.forced.add(id.name);
          // An owner that only reads by now may have kept that.
          if (id.grant && (name === id.name || id.grant.count.write > 0)) this.#lose(id.grant);
        }
      },
      silent,
    });
  }

  endForGood(grant: Grant): void {
    this.#end([grant.id]);
  }

  // Waiting

  #site(lock: Lock): Site {
    const known = this.sites.get(lock) ?? new Site();
    this.sites.set(lock, known);
    return known;
  }

  #sleep(call: Call, ms: number): void {
    const { lock } = call.wish;
    const site = this.#site(lock);
    call.state = "asleep";
    if (!call.isQueued) {
      call.isQueued = true;
      site.queue.push(call);
    }
    this.#listen(site, lock, call);
    // A message that came while the call tried may be newer than the answer.
    if (call.isStirred) return this.#attempt(call);
    if (site.queue[0] !== call) return;
    const { world } = this;
    const timer = ++site.timer;
    site.asleepSince = world.now;
    world.after(world.errs("sleeps as long as the lock lasts") ? ms : Math.min(ms, POLL), () => {
      if (site.timer === timer) this.#hint(call);
    });
  }

  /** The confirmation of a subscription counts as a message. */
  #listen(site: Site, lock: Lock, call: Call): void {
    const { world } = this;
    const isFair = lock.kind === "fair";
    const heard = isFair ? call.id : site;
    if (heard.isHeard) return;
    heard.isHeard = true;
    const channel = isFair ? `${lock.channel}:${call.id.name}` : lock.channel;
    const hear = () => {
      if (world.random.chance(world.trouble / 4)) {
        site.missedAt = world.now;
        return;
      }
      world.after(1 + world.random.below(3), () => this.#hint(isFair ? call : site.queue[0]));
    };
    lock.server.subscribe("publish", channel, hear);
    hear();
  }

  #hint(call: Call | undefined): void {
    if (call?.isInFlight) call.isStirred = true;
    else if (call?.state === "asleep") this.#attempt(call);
  }

  /** Whoever comes to the head of the line tries at once. */
  #leave(call: Call): void {
    if (!call.isQueued) return;
    const { queue } = this.#site(call.wish.lock);
    const isFirst = queue[0] === call;
    queue.splice(queue.indexOf(call), 1);
    call.isQueued = false;
    if (isFirst && !this.world.errs("who leaves the line tells nobody")) this.#hint(queue[0]);
  }

  #send(lock: Lock, command: Command, listener: Listener): void {
    this.world.send(this.name, lock, command, listener);
  }
}
