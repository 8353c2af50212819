/** Calm schedules of semaphores and latches: each number, after each call. */
import { type Call, Course, compare, NAME } from "./course.js";
import type { CalmStep } from "./steps.js";

interface SemaphoreCall extends Call {
  readonly permits: number;
}

/** A call that adds permits changes their number when it is made, and one that takes some when it is answered. */
export class Semaphores extends Course<SemaphoreCall> {
  /** The number of free permits; undefined while none were set. */
  #free: number | undefined;

  protected act({ do: what, client, n, wait }: CalmStep): boolean {
    const at = this.open(client);
    if (at === undefined || (n === 0 && what !== "trySet")) return false;
    const semaphore = this.clientOf(at).getSemaphore(NAME);
    const name = `${what}(${n}) by client ${at}`;
    const free = this.#free ?? 0;
    if (what === "acquire") {
      const call = { ...this.begin(at, wait ?? Number.POSITIVE_INFINITY), permits: n };
      const { signal } = call.controller;
      const made =
        wait === undefined
          ? semaphore.acquire(n, { signal }).then(() => true as const)
          : semaphore.tryAcquire(n, wait, { signal });
      return this.wait(`${name}, wait ${wait}`, call, made, () => {
        this.#free = (this.#free ?? 0) - n;
      });
    }
    if (what === "trySet") {
      const isFirst = this.#free === undefined;
      this.#free ??= n;
      return this.expect(name, semaphore.trySetPermits(n), isFirst);
    }
    if (what === "drain") {
      if (this.#free !== undefined) this.#free = 0;
      return this.expect(name, semaphore.drainPermits(), free);
    }
    this.#free = free + n;
    return this.expect(name, what === "add" ? semaphore.addPermits(n) : semaphore.release(n), "ok");
  }

  protected isFree({ permits }: SemaphoreCall): boolean {
    return (this.#free ?? 0) >= permits;
  }

  /** No permits are kept for a call that wants many; but in its process it may be asked for first. */
  protected override holdsUp(other: SemaphoreCall, call: SemaphoreCall): boolean {
    return call.wait > 0 && other.client === call.client && !this.isFree(other);
  }

  protected async differences(turn: number): Promise<string[]> {
    const found = compare(
      "the number of permits",
      this.server.keys.get(NAME, "string"),
      this.#free?.toString(),
    );
    const at = this.open(turn % 2);
    if (at === undefined) return found;
    const semaphore = this.clientOf(at).getSemaphore(NAME);
    const available = await this.answer("availablePermits()", semaphore.availablePermits());
    return [...found, ...compare("availablePermits()", available, this.#free ?? 0)];
  }
}

/** The count changes when a call is made. */
export class Latches extends Course<Call> {
  #count = 0;

  protected act({ do: what, client, n, wait }: CalmStep): boolean {
    const at = this.open(client);
    if (at === undefined) return false;
    const latch = this.clientOf(at).getCountDownLatch(NAME);
    if (what === "await") {
      const call = this.begin(at, wait ?? Number.POSITIVE_INFINITY);
      const made = latch.await(wait, { signal: call.controller.signal });
      return this.wait(`await(${wait})`, call, made, () => {});
    }
    if (what === "trySet") {
      const isOpen = this.#count === 0;
      const count = Math.max(1, n);
      if (isOpen) this.#count = count;
      return this.expect(`trySetCount(${count}) by client ${at}`, latch.trySetCount(count), isOpen);
    }
    if (this.#count === 1) this.note("it opens", "opened");
    this.#count = Math.max(0, this.#count - 1);
    return this.expect(`countDown() by client ${at}`, latch.countDown(), "ok");
  }

  protected isFree(): boolean {
    return this.#count === 0;
  }

  protected async differences(turn: number): Promise<string[]> {
    const expected = this.#count === 0 ? undefined : String(this.#count);
    const found = compare("the latch's key", this.server.keys.get(NAME, "string"), expected);
    const at = this.open(turn % 2);
    if (at === undefined) return found;
    const count = await this.answer("getCount()", this.clientOf(at).getCountDownLatch(NAME).getCount());
    return [...found, ...compare("getCount()", count, this.#count)];
  }
}
