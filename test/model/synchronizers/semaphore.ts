/** A model of the Semaphore (contract section 5), and histories of one. */
import fc from "fast-check";
import type { Semaphore } from "../../../src/index.js";
import type { FaultProxy } from "../../support/index.js";
import type { World } from "../world.js";
import { type Call, Calls } from "./calls.js";
import { Course, compare, type Granted, type Synchronizer } from "./course.js";
import { codeOf } from "./protocol.js";
import { type CommonStep, client, type Hasty, historiesOf, index, step } from "./steps.js";

interface SemaphoreCall extends Call {
  readonly permits: number;
}

/** A call that adds permits changes their number when it is made, and a call that takes some when it is answered. */
class SemaphoreModel extends Calls<SemaphoreCall> {
  /** The number of free permits; undefined while none were set. */
  permits: number | undefined;

  add(permits: number): void {
    this.permits = (this.permits ?? 0) + permits;
  }

  override granted(call: SemaphoreCall): void {
    super.granted(call);
    this.add(-call.permits);
  }

  protected has({ permits }: SemaphoreCall): boolean {
    return (this.permits ?? 0) >= permits;
  }

  /** No permits are reserved for a call that wants many, but the earlier call goes first. */
  protected holdsUp(first: SemaphoreCall): boolean {
    return !this.has(first);
  }
}

type Step =
  | CommonStep
  | { readonly do: "acquire"; readonly client: number; readonly permits: number }
  | { readonly do: "tryAcquire" | "run"; readonly client: number; readonly permits: number; wait: number }
  /** The function of a `run` ends. */
  | { readonly do: "leave"; readonly run: number }
  | { readonly do: "release" | "add" | "trySet"; readonly client: number; readonly permits: number }
  | { readonly do: "drain"; readonly client: number }
  /** Another program releases permits, with or without a message. */
  | { readonly do: "foreign"; readonly permits: number; readonly told: boolean };

interface Run {
  readonly client: number;
  readonly permits: number;
  readonly leave: () => void;
  /** The outcome of the run. */
  outcome: "done" | "LOCK_LOST";
}

class SemaphoreCourse extends Course<SemaphoreCall, Step> {
  protected readonly model: SemaphoreModel;
  protected readonly lasting: readonly string[];
  protected readonly quick: readonly string[] = ["acquire", "tryAcquire", "run", "leave", "release", "add"];
  #runs: Run[] = [];
  /** The runs whose client was closed. */
  readonly #closed: Run[] = [];

  constructor(world: World, name: string, proxy: FaultProxy) {
    super(world, name, proxy);
    this.model = new SemaphoreModel(world);
    this.lasting = [name];
  }

  protected async act(step: Step): Promise<boolean> {
    if (step.do === "foreign") return this.#foreign(step.permits, step.told);
    if (step.do === "leave") return this.#leave(this.#runs.splice(step.run % this.#runs.length || 0, 1)[0]);
    const at = "client" in step ? this.open(step.client) : undefined;
    if (at === undefined) return false;
    const semaphore = this.#semaphore(at);
    switch (step.do) {
      case "acquire":
      case "tryAcquire":
      case "run":
        return this.#ask(at, step);
      case "release":
        this.model.add(step.permits);
        return this.expect(`${at}.release(${step.permits})`, semaphore.release(step.permits), "ok");
      case "add":
        this.model.add(step.permits);
        return this.expect(`${at}.addPermits(${step.permits})`, semaphore.addPermits(step.permits), "ok");
      case "trySet": {
        const free = this.model.permits === undefined;
        this.model.permits ??= step.permits;
        return this.expect(
          `${at}.trySetPermits(${step.permits})`,
          semaphore.trySetPermits(step.permits),
          free,
        );
      }
      case "drain": {
        const drained = this.model.permits ?? 0;
        if (this.model.permits !== undefined) this.model.permits = 0;
        return this.expect(`${at}.drainPermits()`, semaphore.drainPermits(), drained);
      }
      default:
        return false;
    }
  }

  #ask(at: number, step: Step & { do: "acquire" | "tryAcquire" | "run" }): true {
    const { permits } = step;
    const wait = step.do === "acquire" ? Number.POSITIVE_INFINITY : step.wait;
    const call = { client: at, permits, wait, begun: this.world.now, aborted: false, pending: true };
    const semaphore = this.#semaphore(at);
    this.call(`${step.do}(${permits}, wait ${wait})`, call, async (signal): Promise<Granted> => {
      if (step.do === "tryAcquire") return semaphore.tryAcquire(permits, wait, { signal });
      if (step.do === "acquire") await semaphore.acquire(permits, { signal });
      else await this.#run(at, permits, wait, signal);
      return true;
    });
    return true;
  }

  /** Resolves when the run has got its permits. */
  #run(at: number, permits: number, wait: number, signal: AbortSignal): Promise<void> {
    return new Promise((entered, reject) => {
      let run: Run | undefined;
      const inside = () =>
        new Promise<string>((resolve) => {
          run = { client: at, permits, leave: () => resolve("done"), outcome: "done" };
          this.#runs.push(run);
          entered();
        });
      const running = this.#semaphore(at).run(inside, { permits, wait, signal });
      running.catch(reject); // has no effect once the run has its permits
      const settled = (outcome: string) => {
        if (run && outcome !== run.outcome) this.fail(`a run ended with ${outcome}, not ${run.outcome}`);
      };
      running.then(settled, (error: unknown) => settled(codeOf(error)));
    });
  }

  #leave(run: Run | undefined): boolean {
    if (!run) return false;
    this.note(`a run of client ${run.client} leaves`, "left");
    this.model.add(run.permits);
    run.leave();
    return true;
  }

  async #foreign(permits: number, told: boolean): Promise<true> {
    this.note(`another program releases ${permits}${told ? "" : ", and tells nobody"}`);
    this.model.add(permits);
    if (!told) this.model.quiet();
    const total = await this.world.server.incrby(this.name, permits);
    if (told) await this.world.server.publish(`redisson_sc:{${this.name}}`, String(total));
    return true;
  }

  protected vanish(): void {
    this.model.permits = undefined;
  }

  protected override closing(client: number): void {
    for (const run of this.#runs.filter((each) => each.client === client)) {
      this.model.add(run.permits);
      run.outcome = "LOCK_LOST";
      // The run's function ends at the end of the history.
      this.#closed.push(run);
    }
    this.#runs = this.#runs.filter((run) => run.client !== client);
  }

  protected async differences(turn: number): Promise<string[]> {
    const { permits } = this.model;
    const found = compare("permits", await this.world.server.get(this.name), permits?.toString() ?? null);
    const at = this.open(turn % 2);
    if (at === undefined) return found;
    const available = await this.#semaphore(at).availablePermits();
    return [...found, ...compare("availablePermits", available, permits ?? 0)];
  }

  protected override ending(): void {
    for (const run of this.#runs.splice(0)) this.#leave(run);
    for (const run of this.#closed) run.leave();
  }

  #semaphore(at: number): Semaphore {
    return this.clientOf(at).getSemaphore(this.name);
  }
}

const few = fc.constantFrom(1, 1, 1, 2, 3);
const wait = fc.constantFrom(0, 0, 5_000, 20_000, 60_000);

export const semaphores: Synchronizer<Step & Hasty> = {
  name: "semaphore",
  histories: historiesOf<Step>([
    step(30, "acquire", { client, permits: few }),
    step(40, "tryAcquire", { client, permits: few, wait }),
    step(20, "run", { client, permits: few, wait }),
    step(24, "leave", { run: index }),
    step(40, "release", { client, permits: few }),
    step(8, "add", { client, permits: few }),
    step(25, "trySet", { client, permits: fc.nat({ max: 4 }) }),
    step(8, "drain", { client }),
    step(10, "foreign", { permits: few, told: fc.boolean() }),
  ]),
  begin: (...place) => new SemaphoreCourse(...place),
};
