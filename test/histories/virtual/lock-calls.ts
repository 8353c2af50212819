/** What a process does to a virtual lock, call by call, by the library's rules; and what it then claims. */
import type { Side } from "../specs.js";
import { type LockRecord, NAME, ns, type OpenCall, type VirtualHold } from "./lock-record.js";
import type { LockKind, LockStore, Reply } from "./lock-store.js";
import type { Mistake } from "./mistakes.js";
import { type Script, Signal, type VirtualProcess, type World } from "./world.js";

/** A renewal that never ends is found long before this time. */
const FOR_EVER = 30_000;
const SLICE = 15;
/** By this time the library has given back the holds that it could not give back at once. */
const IN_THE_END = 500;

export interface Setting {
  readonly world: World;
  readonly kind: LockKind;
  readonly store: LockStore;
  readonly record: LockRecord;
  /** Milliseconds. */
  readonly pollCap: number;
  /** The lease of a hold that is renewed, every third of it. */
  readonly watchdog: number;
  /** The lease of a hold that is not renewed. */
  readonly lease: readonly [least: number, most: number];
  readonly wait: number;
  /** Whether waiters poll often enough to notice what no message tells them. */
  readonly polls: boolean;
  /** Whether locks are taken by force. */
  readonly forced: boolean;
}

export interface Want {
  readonly owner?: string;
  readonly side?: Side;
  readonly lease?: number | undefined;
  readonly wait?: number;
  /** The outer hold on the same side, for a nested call. */
  readonly outer?: VirtualHold;
  /** The hold is taken within a stay that goes on, and is no stay of its own. */
  readonly inside?: boolean;
}

export class LockCalls {
  protected readonly setting: Setting;
  protected readonly process: VirtualProcess;
  protected readonly world: World;
  protected readonly owner: string;

  constructor(setting: Setting, process: VirtualProcess) {
    this.setting = setting;
    this.process = process;
    this.world = setting.world;
    this.owner = setting.world.newId();
  }

  protected *acquire({
    owner,
    side = "write",
    lease,
    wait = 0,
    outer,
    inside = false,
  }: Want): Script<VirtualHold | undefined> {
    const { kind, store, record, pollCap } = this.setting;
    const [world, process] = [this.world, this.process];
    const own = this.#has("renewal-after-unlock") ? this.owner : world.newId();
    const who = owner ?? own;
    const call = record.open(who, { do: "acquire", side });
    const request = world.newId();
    const attempt = { owner: who, side, lease: lease ?? this.setting.watchdog, request, waits: wait > 0 };
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
        // There is no answer, or it is too late, or too few replicas have the grant.
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
        // A waiter that was paused may have lost its place.
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

  /** Undoes the call, and tells the caller that it has failed; nothing of the call is left then. */
  *#undo(call: OpenCall, request: string, outer: VirtualHold | undefined): Script {
    const { store, record } = this.setting;
    const { caller, invoked } = call;
    const side = call.call.side ?? "write";
    if (!this.#has("no-undo")) yield* this.process.insist(() => store.undo(caller, side, request));
    const now = this.world.stamp();
    call.settle(now);
    record.add(caller, { do: "release", side }, invoked, now);
    if (outer && !this.isHeld(outer)) return;
    record.add(caller, { do: "count", side }, now, now, { count: outer ? 1 : 0 });
  }

  protected *stay(hold: VirtualHold, ms: number): Script {
    const end = this.world.now + ms;
    while (this.world.now < end && this.isHeld(hold)) {
      yield { ms: Math.max(1, Math.min(SLICE, end - this.world.now)) };
    }
  }

  protected isHeld({ lost, deadline, renewed }: VirtualHold): boolean {
    if (lost || this.world.now < deadline) return !lost;
    // With these mistakes a process relies on the renewal alone.
    const trusts = (["loss-untold", "renews-anyones", "renewal-revives"] as const).some((it) =>
      this.#has(it),
    );
    return (renewed && trusts) || this.#has("expiry-unnoticed");
  }

  protected leave(hold: VirtualHold): void {
    if (hold.stay) return;
    const held = this.isHeld(hold);
    const at = held ? this.world.now : Math.min(this.world.now, hold.deadline);
    hold.stay = { left: held ? "in time" : "too late", at };
  }

  protected *release(hold: VirtualHold, nested = false): Script {
    const { record, store } = this.setting;
    const { owner, side } = hold;
    if (!nested) this.leave(hold);
    const inTime = this.isHeld(hold);
    const abandons = this.#has("release-abandoned");
    if (!abandons) hold.over = true;
    const call = record.open(owner, { do: "release", side });
    const request = this.world.newId();
    const run = () => store.release(owner, side, request) ?? -1;
    const answer = abandons
      ? yield* this.process.call(run)
      : yield* this.process.insist(run, this.#has("error-is-release") ? 0 : undefined);
    const now = this.world.stamp();
    // Without an answer the library repeats the release until it has one.
    if (answer === undefined) call.settle(now + IN_THE_END, { released: true });
    else hold.over = true;
    if (answer === undefined) return;
    if (!inTime || !(now < hold.deadline)) {
      // It makes no difference whether the hold was given back or had ended.
      call.settle(now, { released: false, because: "lost" });
      if (!nested) record.expires(hold);
    } else if (answer >= 0) call.settle(now, { released: true, left: answer });
    else {
      call.fail();
      record.add(owner, { do: "count", side }, call.invoked, now, { count: 0 });
    }
  }

  protected *counting(hold: VirtualHold): Script {
    const { record, store } = this.setting;
    const { owner, side } = hold;
    const call = record.open(owner, { do: "count", side });
    const count = yield* this.process.insist(() => store.count(owner, side));
    if (this.isHeld(hold)) call.settle(this.world.stamp(), { count });
    else call.fail();
  }

  *#renewing(hold: VirtualHold): Script {
    const { store, record, watchdog } = this.setting;
    const { owner, side } = hold;
    const world = this.world;
    const stray = this.#has("renewal-after-unlock");
    if (this.#has("downgrade-unrenewed") && side === "read" && this.#wasWriter(owner)) {
      hold.deadline = Number.POSITIVE_INFINITY;
      return;
    }
    while (world.now < FOR_EVER) {
      yield { ms: watchdog / 3 };
      for (let answered = false; !answered; ) {
        if ((hold.over || !this.isHeld(hold)) && !stray) return;
        const sentAt = world.now;
        const renewed = yield* this.process.call(() => store.renew(owner, side, watchdog));
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
    return this.setting.record.stays.some((other) => other.owner === owner && other.side === "write");
  }

  #has(mistake: Mistake): boolean {
    return this.world.has(mistake);
  }
}
