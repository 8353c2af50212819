/** What the processes do with one virtual lock, by the library's rules; and what they then claim. */
import type { Side } from "../specs.js";
import { type LockRecord, NAME, ns, type OpenCall, type VirtualHold } from "./lock-record.js";
import type { LockKind, LockStore, Reply } from "./lock-store.js";
import type { Mistake } from "./mistakes.js";
import { type Script, Signal, type VirtualProcess, type World } from "./world.js";

/** A renewal that goes on for ever is seen long before. */
const FOR_EVER = 30_000;
const SLICE = 15;
/** Longer than some leases. */
const LONG_STAY = 1_800;
/** By then the library has given back what it could not at once. */
const IN_THE_END = 500;

export interface Setting {
  readonly world: World;
  readonly kind: LockKind;
  readonly store: LockStore;
  readonly record: LockRecord;
  /** Milliseconds. */
  readonly pollCap: number;
  /** Of a hold that is renewed, by thirds. */
  readonly watchdog: number;
  /** Of one that is not. */
  readonly lease: readonly [least: number, most: number];
  readonly wait: number;
  /** Often enough to find out what no message tells. */
  readonly polls: boolean;
  /** Locks are taken from their holders. */
  readonly forced: boolean;
}

interface Want {
  readonly owner?: string;
  readonly side?: Side;
  readonly lease?: number | undefined;
  readonly wait?: number;
  /** The hold that it is nested in, on the same side. */
  readonly outer?: VirtualHold;
  /** Within a stay that goes on, and no stay of its own. */
  readonly inside?: boolean;
}

type Way = (side: Side) => Script;

export class LockTask {
  readonly #setting: Setting;
  readonly #process: VirtualProcess;
  readonly #world: World;
  readonly #owner: string;

  constructor(setting: Setting, process: VirtualProcess) {
    this.#setting = setting;
    this.#process = process;
    this.#world = setting.world;
    this.#owner = setting.world.newId();
  }

  *work(rounds: number): Script {
    const { kind, forced, polls, record } = this.#setting;
    const { random } = this.#world;
    const plain: Way[] = [this.#plainly, this.#plainly, this.#trying, this.#trying, this.#hastily];
    const more: Way[] = [this.#nesting, this.#nesting, this.#looking];
    // No message tells of a lease that ends: who stands further behind has to poll.
    const ending: Way[] = kind === "lock" || polls ? [this.#lapsing, this.#outlasting] : [];
    const sharing: Way[] =
      kind === "read-write" ? [this.#downgrading, this.#upgrading, this.#readingInside] : [];
    const ways = forced
      ? [...plain, this.#forcing, this.#outlasting]
      : [...plain, ...more, ...ending, ...sharing];
    record.forced = forced;
    for (let i = 0; i < rounds; i++) {
      yield { ms: random.below(60) };
      const side = kind === "read-write" && random.chance(2 / 3) ? "read" : "write";
      yield* random.pick(ways).call(this, side);
    }
  }

  // Ways

  *#plainly(side: Side): Script {
    yield* this.#holding({ side, wait: this.#setting.wait, lease: this.#anyLease() });
  }

  *#trying(side: Side): Script {
    yield* this.#holding({ side });
  }

  *#hastily(side: Side): Script {
    yield* this.#holding({ side, wait: this.#world.between(5, 120) });
  }

  /** Nobody gives it back. */
  *#lapsing(side: Side): Script {
    const lease = this.#world.between(60, 200);
    const hold = yield* this.#acquire({ side, lease, wait: this.#setting.wait });
    if (!hold) return;
    yield* this.#acquire({ owner: hold.owner, side, lease, outer: hold, inside: true });
    const overBy = this.#world.now + lease;
    yield* this.#stay(hold, overBy);
    this.#leave(hold);
    this.#setting.record.expires(hold, overBy);
  }

  *#outlasting(side: Side): Script {
    const lease = this.#world.between(40, 150);
    const hold = yield* this.#acquire({ side, lease, wait: this.#setting.wait });
    if (!hold) return;
    yield* this.#stay(hold, this.#world.random.below(2 * lease));
    yield { ms: this.#world.random.below(lease) };
    yield* this.#release(hold);
  }

  *#nesting(side: Side): Script {
    const hold = yield* this.#acquire({ side, wait: this.#setting.wait, lease: this.#anyLease() });
    if (!hold) return;
    const lease = hold.renewed ? undefined : this.#world.between(20, 40);
    const nested = yield* this.#acquire({ owner: hold.owner, side, lease, outer: hold, inside: true });
    if (nested) {
      yield* this.#counting(hold);
      yield* this.#stay(hold, 10);
      yield* this.#release(nested, true);
    }
    yield* this.#counting(hold);
    yield* this.#stay(hold, this.#world.random.below(120));
    yield* this.#release(hold);
  }

  *#looking(side: Side): Script {
    const { record, store } = this.#setting;
    const call = record.open(this.#owner, { do: "look", side });
    const held = yield* this.#process.insist(() => store.look(side));
    call.settle(this.#world.stamp(), { held });
  }

  *#forcing(side: Side): Script {
    const { record, store } = this.#setting;
    const call = record.open(this.#owner, { do: "force", side });
    let held: boolean | undefined;
    yield* this.#process.insist(() => {
      held ??= store.force(side);
      return true;
    });
    if (held !== undefined) call.settle(this.#world.stamp(), { held });
  }

  *#downgrading(): Script {
    const hold = yield* this.#acquire({ wait: this.#setting.wait });
    if (!hold) return;
    yield* this.#stay(hold, 20);
    this.#leave(hold);
    const reading = yield* this.#acquire({ owner: hold.owner, side: "read" });
    yield* this.#release(hold);
    if (!reading) return;
    // Longer than a lease now and then.
    yield* this.#stay(reading, this.#world.random.below(2 * LONG_STAY));
    yield* this.#release(reading);
  }

  *#upgrading(): Script {
    const hold = yield* this.#acquire({ side: "read", wait: this.#setting.wait });
    if (!hold) return;
    const written = yield* this.#acquire({ owner: hold.owner });
    if (written) yield* this.#release(written);
    yield* this.#stay(hold, 20);
    yield* this.#release(hold);
  }

  *#readingInside(): Script {
    const { wait, lease } = this.#setting;
    const hold = yield* this.#acquire({ wait, lease: this.#world.between(...lease) });
    if (!hold) return;
    const reading = yield* this.#acquire({ owner: hold.owner, side: "read", lease: 20, inside: true });
    if (reading) yield* this.#release(reading, true);
    yield* this.#stay(hold, 100);
    yield* this.#release(hold);
  }

  *#holding(want: Want): Script {
    const hold = yield* this.#acquire(want);
    if (!hold) return;
    // Now and then longer than it lasts without a renewal.
    yield* this.#stay(hold, this.#world.random.chance(0.15) ? LONG_STAY : this.#world.random.below(60));
    yield* this.#release(hold);
  }

  #anyLease(): number | undefined {
    return this.#world.random.chance(0.4) ? this.#world.between(...this.#setting.lease) : undefined;
  }

  // What the ways are made of

  *#acquire({
    owner,
    side = "write",
    lease,
    wait = 0,
    outer,
    inside = false,
  }: Want): Script<VirtualHold | undefined> {
    const { kind, store, record, pollCap } = this.#setting;
    const [world, process] = [this.#world, this.#process];
    const own = this.#has("renewal-after-unlock") ? this.#owner : world.newId();
    const who = owner ?? own;
    const call = record.open(who, { do: "acquire", side });
    const request = world.newId();
    const attempt = { owner: who, side, lease: lease ?? this.#setting.watchdog, request, waits: wait > 0 };
    const listener = new Signal();
    let placeAt: number | undefined;
    try {
      for (;;) {
        const sentAt = world.now;
        listener.isSet = false;
        const reply: Reply | undefined = yield* process.call(() =>
          store.acquire({ ...attempt, clientNow: world.now + process.skew }),
        );
        if (reply?.granted && this.#has("replicas-short-left") && world.random.chance(0.05)) {
          call.fail();
          return;
        }
        const from = this.#has("deadline-from-reply") ? world.now : sentAt;
        if (reply?.granted && world.now < from + attempt.lease && !world.random.chance(0.03)) {
          const { token, count } = reply;
          call.settle(
            world.now,
            side === "write" ? { granted: true, token, count } : { granted: true, count },
          );
          const hold: VirtualHold = {
            owner: who,
            side,
            process,
            lease: attempt.lease,
            renewed: lease === undefined,
            askedAt: call.invoked,
            placeAt,
            enteredAt: world.now,
            token,
            deadline: from + attempt.lease,
            lost: false,
            over: false,
          };
          if (!inside) record.stays.push(hold);
          if (lease === undefined) process.spawn(this.#renewing(hold));
          return hold;
        }
        // No answer, or too late, or too few replicas have it.
        if (!reply || reply.granted) {
          yield* this.#undo(call, request, outer);
          return;
        }
        if (reply.because === "upgrade") {
          call.settle(world.stamp(), { granted: false, because: "upgrade" });
          return;
        }
        const left = call.invoked + wait - world.now;
        if (left <= 0) {
          if (reply.because === "held") call.settle(world.stamp(), { granted: false, because: "held" });
          else call.fail();
          if (wait > 0) {
            record.asks.push({
              lock: NAME,
              shared: side === "read",
              askedAt: ns(call.invoked),
              until: ns(world.now),
            });
            yield* process.insist(() => store.undo(who, side, request));
          }
          return;
        }
        // One that was paused may have lost its place.
        if (kind !== "lock" && side === "write" && process.resumedAt < sentAt) placeAt ??= world.now;
        else placeAt = undefined;
        if (!process.listeners.has(listener)) {
          yield { ms: world.between(2, 40) };
          process.listeners.add(listener);
          if (!this.#has("no-second-look")) continue;
        }
        yield { ms: Math.min(reply.ttl + 2, pollCap, left), signal: listener };
        if (process.resumedAt >= sentAt) placeAt = undefined;
      }
    } finally {
      process.listeners.delete(listener);
    }
  }

  /** The caller is told that the call has failed; nothing of it is left then. */
  *#undo(call: OpenCall, request: string, outer: VirtualHold | undefined): Script {
    const { store, record } = this.#setting;
    const { caller, invoked } = call;
    const side = call.call.side ?? "write";
    if (!this.#has("no-undo")) yield* this.#process.insist(() => store.undo(caller, side, request));
    const now = this.#world.stamp();
    call.settle(now);
    record.add(caller, { do: "release", side }, invoked, now);
    if (outer && !this.#isHeld(outer)) return;
    record.add(caller, { do: "count", side }, now, now, { count: outer ? 1 : 0 });
  }

  *#stay(hold: VirtualHold, ms: number): Script {
    const end = this.#world.now + ms;
    while (this.#world.now < end && this.#isHeld(hold)) {
      yield { ms: Math.max(1, Math.min(SLICE, end - this.#world.now)) };
    }
  }

  #isHeld({ lost, deadline, renewed }: VirtualHold): boolean {
    if (lost || this.#world.now < deadline) return !lost;
    // These leave it all to the renewal.
    const trusts = (["loss-untold", "renews-anyones", "renewal-revives"] as const).some((it) =>
      this.#has(it),
    );
    return (renewed && trusts) || this.#has("expiry-unnoticed");
  }

  #leave(hold: VirtualHold): void {
    if (hold.stay) return;
    const held = this.#isHeld(hold);
    const at = held ? this.#world.now : Math.min(this.#world.now, hold.deadline);
    hold.stay = { left: held ? "in time" : "too late", at };
  }

  *#release(hold: VirtualHold, nested = false): Script {
    const { record, store } = this.#setting;
    const { owner, side } = hold;
    if (!nested) this.#leave(hold);
    const inTime = this.#isHeld(hold);
    const abandons = this.#has("release-abandoned");
    if (!abandons) hold.over = true;
    const call = record.open(owner, { do: "release", side });
    const request = this.#world.newId();
    const run = () => store.release(owner, side, request) ?? -1;
    const answer = abandons
      ? yield* this.#process.call(run)
      : yield* this.#process.insist(run, this.#has("error-is-release") ? 0 : undefined);
    const now = this.#world.stamp();
    // Without an answer the library goes on until it has one.
    if (answer === undefined) call.settle(now + IN_THE_END, { released: true });
    else hold.over = true;
    if (answer === undefined) return;
    if (!inTime || !(now < hold.deadline)) {
      // Whether it was given back or had ended is all the same.
      call.settle(now, { released: false, because: "lost" });
      if (!nested) record.expires(hold);
    } else if (answer >= 0) call.settle(now, { released: true, left: answer });
    else {
      call.fail();
      record.add(owner, { do: "count", side }, call.invoked, now, { count: 0 });
    }
  }

  *#counting(hold: VirtualHold): Script {
    const { record, store } = this.#setting;
    const { owner, side } = hold;
    const call = record.open(owner, { do: "count", side });
    const count = yield* this.#process.insist(() => store.count(owner, side));
    if (this.#isHeld(hold)) call.settle(this.#world.stamp(), { count });
    else call.fail();
  }

  *#renewing(hold: VirtualHold): Script {
    const { store, record, watchdog } = this.#setting;
    const { owner, side } = hold;
    const world = this.#world;
    const stray = this.#has("renewal-after-unlock");
    if (this.#has("downgrade-unrenewed") && side === "read" && this.#wasWriter(owner)) {
      hold.deadline = Number.POSITIVE_INFINITY;
      return;
    }
    while (world.now < FOR_EVER) {
      yield { ms: watchdog / 3 };
      for (let answered = false; !answered; ) {
        if ((hold.over || !this.#isHeld(hold)) && !stray) return;
        const sentAt = world.now;
        const renewed = yield* this.#process.call(() => store.renew(owner, side, watchdog));
        if (hold.over && !stray) return;
        answered = renewed !== undefined;
        if (renewed) hold.deadline = sentAt + watchdog;
        else if (renewed === false && this.#has("loss-untold")) hold.deadline = Number.POSITIVE_INFINITY;
        else if (renewed === false && !stray) {
          hold.lost = true;
          if (world.now < hold.deadline)
            record.add(owner, { do: "count", side }, sentAt, world.stamp(), { count: 0 });
          return;
        } else if (renewed === undefined && this.#has("watchdog-dies")) {
          hold.deadline = Number.POSITIVE_INFINITY;
          return;
        }
      }
    }
  }

  #wasWriter(owner: string): boolean {
    return this.#setting.record.stays.some((other) => other.owner === owner && other.side === "write");
  }

  #has(mistake: Mistake): boolean {
    return this.#world.has(mistake);
  }
}
