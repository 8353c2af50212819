/** A model of the CountDownLatch (contract section 5), and histories of one. */
import fc from "fast-check";
import type { CountDownLatch } from "../../../src/index.js";
import type { FaultProxy } from "../../support/index.js";
import type { World } from "../world.js";
import { type Call, Calls } from "./calls.js";
import { Course, compare, type Synchronizer } from "./course.js";
import { type CommonStep, client, type Hasty, historiesOf, step } from "./steps.js";

/** The count changes when a call is made. */
class LatchModel extends Calls<Call> {
  count = 0;
  /** The number of unanswered settings of an open latch: a call may still find the latch open meanwhile. */
  #settings = 0;

  setting(answer: Promise<unknown>): void {
    this.#settings++;
    const over = () => {
      this.#settings--;
    };
    answer.then(over, over);
  }

  protected has(): boolean {
    return this.count === 0;
  }

  protected override mightHave(): boolean {
    return this.count === 0 || this.#settings > 0;
  }

  /** False, because the latch opens for all. */
  protected holdsUp(): boolean {
    return false;
  }
}

type Step =
  | CommonStep
  | { readonly do: "trySet"; readonly client: number; readonly count: number }
  | { readonly do: "countDown"; readonly client: number }
  | { readonly do: "await"; readonly client: number; readonly wait: number | undefined }
  /** Another program counts down. */
  | { readonly do: "foreign" };

class LatchCourse extends Course<Call, Step> {
  protected readonly model: LatchModel;
  protected readonly lasting: readonly string[];
  protected readonly quick: readonly string[] = ["countDown", "await"];

  constructor(world: World, name: string, proxy: FaultProxy) {
    super(world, name, proxy);
    this.model = new LatchModel(world);
    this.lasting = [name];
  }

  protected act(step: Step): boolean | Promise<boolean> {
    if (step.do === "foreign") return this.#foreign();
    const at = "client" in step ? this.open(step.client) : undefined;
    if (at === undefined) return false;
    const latch = this.#latch(at);
    switch (step.do) {
      case "trySet": {
        const free = this.model.count === 0;
        const answer = latch.trySetCount(step.count);
        if (free) {
          this.model.count = step.count;
          this.model.setting(answer);
        }
        return this.expect(`${at}.trySetCount(${step.count})`, answer, free);
      }
      case "countDown":
        this.#count();
        return this.expect(`${at}.countDown()`, latch.countDown(), "ok");
      case "await": {
        const wait = step.wait ?? Number.POSITIVE_INFINITY;
        const call = { client: at, wait, begun: this.world.now, aborted: false, pending: true };
        this.call(`await(${step.wait})`, call, (signal) => latch.await(step.wait, { signal }));
        return true;
      }
      default:
        return false;
    }
  }

  #count(): void {
    if (this.model.count === 1) this.note("it opens", "opened");
    this.model.count = Math.max(0, this.model.count - 1);
  }

  /** Counts down as Redisson does. */
  async #foreign(): Promise<boolean> {
    if (this.model.count === 0) return false;
    this.note("another program counts down");
    this.#count();
    const { server } = this.world;
    if ((await server.decr(this.name)) > 0) return true;
    await server.del(this.name);
    await server.publish(`redisson_countdownlatch__channel__{${this.name}}`, "0");
    return true;
  }

  protected vanish(): void {
    if (this.model.count > 0) this.model.quiet();
    this.model.count = 0;
  }

  protected async differences(turn: number): Promise<string[]> {
    const { count } = this.model;
    const expected = count === 0 ? null : String(count);
    const found = compare("the key", await this.world.server.get(this.name), expected);
    const at = this.open(turn % 2);
    if (at === undefined) return found;
    return [...found, ...compare("getCount", await this.#latch(at).getCount(), count)];
  }

  #latch(at: number): CountDownLatch {
    return this.clientOf(at).getCountDownLatch(this.name);
  }
}

export const latches: Synchronizer<Step & Hasty> = {
  name: "latch",
  histories: historiesOf<Step>([
    step(40, "trySet", { client, count: fc.integer({ min: 1, max: 4 }) }),
    step(70, "countDown", { client }),
    step(60, "await", { client, wait: fc.constantFrom(undefined, undefined, 0, 5_000, 20_000, 60_000) }),
    step(15, "foreign"),
  ]),
  begin: (...place) => new LatchCourse(...place),
};
