/** What the tasks of the processes do with one virtual lock: ways to take it, keep it and give it back. */
import type { Side } from "../specs.js";
import { LockCalls, type Want } from "./lock-calls.js";
import type { Script } from "./world.js";

/** Milliseconds, longer than some leases. */
const LONG_STAY = 1_800;

type Way = (side: Side) => Script;

export class LockTask extends LockCalls {
  *work(rounds: number): Script {
    const { kind, forced, polls, record } = this.setting;
    const { random } = this.world;
    const plain: Way[] = [this.#plainly, this.#plainly, this.#trying, this.#trying, this.#hastily];
    const more: Way[] = [this.#nesting, this.#nesting, this.#looking];
    // No message tells of a lease that ends, so the waiters behind the first one must poll.
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
    yield* this.#holding({ side, wait: this.setting.wait, lease: this.#anyLease() });
  }

  *#trying(side: Side): Script {
    yield* this.#holding({ side });
  }

  *#hastily(side: Side): Script {
    yield* this.#holding({ side, wait: this.world.between(5, 120) });
  }

  /** Takes the lock and never gives it back. */
  *#lapsing(side: Side): Script {
    const lease = this.world.between(60, 200);
    const hold = yield* this.acquire({ side, lease, wait: this.setting.wait });
    if (!hold) return;
    yield* this.acquire({ owner: hold.owner, side, lease, outer: hold, inside: true });
    const overBy = this.world.now + lease;
    yield* this.stay(hold, overBy);
    this.leave(hold);
    this.setting.record.expires(hold, overBy);
  }

  *#outlasting(side: Side): Script {
    const lease = this.world.between(40, 150);
    const hold = yield* this.acquire({ side, lease, wait: this.setting.wait });
    if (!hold) return;
    yield* this.stay(hold, this.world.random.below(2 * lease));
    yield { ms: this.world.random.below(lease) };
    yield* this.release(hold);
  }

  *#nesting(side: Side): Script {
    const hold = yield* this.acquire({ side, wait: this.setting.wait, lease: this.#anyLease() });
    if (!hold) return;
    const lease = hold.renewed ? undefined : this.world.between(20, 40);
    const nested = yield* this.acquire({ owner: hold.owner, side, lease, outer: hold, inside: true });
    if (nested) {
      yield* this.counting(hold);
      yield* this.stay(hold, 10);
      yield* this.release(nested, true);
    }
    yield* this.counting(hold);
    yield* this.stay(hold, this.world.random.below(120));
    yield* this.release(hold);
  }

  *#looking(side: Side): Script {
    const { record, store } = this.setting;
    const call = record.open(this.owner, { do: "look", side });
    const held = yield* this.process.insist(() => store.look(side));
    call.settle(this.world.stamp(), { held });
  }

  *#forcing(side: Side): Script {
    const { record, store } = this.setting;
    const call = record.open(this.owner, { do: "force", side });
    let held: boolean | undefined;
    yield* this.process.insist(() => {
      held ??= store.force(side);
      return true;
    });
    if (held !== undefined) call.settle(this.world.stamp(), { held });
  }

  *#downgrading(): Script {
    const hold = yield* this.acquire({ wait: this.setting.wait });
    if (!hold) return;
    yield* this.stay(hold, 20);
    this.leave(hold);
    const reading = yield* this.acquire({ owner: hold.owner, side: "read" });
    yield* this.release(hold);
    if (!reading) return;
    // Now and then longer than a lease.
    yield* this.stay(reading, this.world.random.below(2 * LONG_STAY));
    yield* this.release(reading);
  }

  *#upgrading(): Script {
    const hold = yield* this.acquire({ side: "read", wait: this.setting.wait });
    if (!hold) return;
    const written = yield* this.acquire({ owner: hold.owner });
    if (written) yield* this.release(written);
    yield* this.stay(hold, 20);
    yield* this.release(hold);
  }

  *#readingInside(): Script {
    const { wait, lease } = this.setting;
    const hold = yield* this.acquire({ wait, lease: this.world.between(...lease) });
    if (!hold) return;
    const reading = yield* this.acquire({ owner: hold.owner, side: "read", lease: 20, inside: true });
    if (reading) yield* this.release(reading, true);
    yield* this.stay(hold, 100);
    yield* this.release(hold);
  }

  *#holding(want: Want): Script {
    const hold = yield* this.acquire(want);
    if (!hold) return;
    // Now and then longer than the hold lasts without a renewal.
    yield* this.stay(hold, this.world.random.chance(0.15) ? LONG_STAY : this.world.random.below(60));
    yield* this.release(hold);
  }

  #anyLease(): number | undefined {
    return this.world.random.chance(0.4) ? this.world.between(...this.setting.lease) : undefined;
  }
}
