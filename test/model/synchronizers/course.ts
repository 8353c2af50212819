/** Runs one history of a synchronizer against the library and a model side by side. */
import type fc from "fast-check";
import type { LockClient } from "../../../src/index.js";
import type { FaultProxy, Matcher } from "../../support/index.js";
import type { Course as Checked } from "../check.js";
import { pick } from "../scene.js";
import type { Inhabitant, World } from "../world.js";
import type { Call, Calls } from "./calls.js";
import { ABORTED, codeOf, Protocol } from "./protocol.js";
import type { CommonStep, Hasty } from "./steps.js";

/** Milliseconds without an action before and after each moment at which something is due. */
const CLEARANCE = 100;
/** Milliseconds after which the markers that make calls count once are gone. */
const LONGEST_MARK = 60_000;

/** The library's answer to a call that waits: what it got, or that there was nothing. */
export type Granted = boolean | string;

/** A kind of synchronizer: its histories, and how one is run. */
export interface Synchronizer<Step> {
  readonly name: string;
  readonly histories: fc.Arbitrary<Step[]>;
  begin(world: World, name: string, proxy: FaultProxy): Checked<Step>;
}

export abstract class Course<C extends Call, S extends { do: string }>
  extends Protocol
  implements Checked<S & Hasty>
{
  protected readonly world: World;
  protected readonly name: string;
  protected abstract readonly model: Calls<C>;
  /** Keys that may be without TTL. */
  protected abstract readonly lasting: readonly string[];
  /** Calls that may share a tick. */
  protected abstract readonly quick: readonly string[];
  readonly #proxy: FaultProxy;
  readonly #controllers = new Map<C, AbortController>();
  readonly #stopListening: (() => void)[] = [];
  readonly #disarm: (() => void)[] = [];
  #unanswered = 0;
  #checks = 0;
  /** Whether the present commands are those of a check, and not of a step. */
  #looking = false;

  constructor(world: World, name: string, proxy: FaultProxy) {
    super(world);
    this.world = world;
    this.name = name;
    this.#proxy = proxy;
    const failed = ({ cause }: { cause: unknown }) => this.fail(`error event: ${String(cause)}`);
    this.listen((client) => {
      client.on("error", failed);
      return () => client.off("error", failed);
    });
  }

  /** A call of this kind. Returns false if there is nothing that the step could be about. */
  protected abstract act(step: S): boolean | Promise<boolean>;
  /** The keys are lost. */
  protected abstract vanish(): void;
  /** Where the server and the library at rest report something else than the model. */
  protected abstract differences(turn: number): Promise<string[]>;
  /** Called before a client is closed: what it has is given back. */
  protected closing(_client: number): void {}
  /** Called before the end: what the history has is given back. */
  protected ending(): void {}

  /** @throws Violation if the library does what the model does not allow */
  async run(steps: readonly (S & Hasty)[]): Promise<void> {
    for (const step of steps) {
      const isQuick = step.do === "abort" || this.quick.includes(step.do);
      const arms = step.do === "loseReply" || step.do === "loseRequest";
      if (this.model.hasty && !isQuick && !arms) await this.check();
      if (!(await this.#take(step))) continue;
      if (step.hasty && isQuick) {
        this.model.hasty = true;
        this.note("at once:");
      } else if (!arms && !(step.hasty && step.do === "deafen")) await this.check();
    }
    await this.#end();
  }

  /** Returns false if there is nothing that the step could be about. */
  async #take(step: S | CommonStep): Promise<boolean> {
    const common = step as CommonStep;
    switch (common.do) {
      case "abort":
        return this.#abort(pick(this.model.waiting, common.call));
      case "close":
        return this.#close(common.client);
      case "vanish":
        this.note("the keys are lost");
        this.vanish();
        await this.world.server.del(...this.lasting);
        return true;
      case "pass":
        return this.#pass(common.ms, undefined);
      case "stall":
        return this.#pass(common.ms, common.client);
      case "deafen":
        this.note("the clients hear nothing");
        await this.world.deafen();
        return true;
      case "loseReply":
      case "loseRequest":
        return this.#lose(common.do);
      default:
        return this.act(step as S);
    }
  }

  /** Makes a call that may have to wait, and tells the model its outcome. */
  protected call(what: string, call: C, made: (signal: AbortSignal) => Promise<Granted>): void {
    const controller = new AbortController();
    this.#controllers.set(this.model.ask(call), controller);
    const name = this.model.nameOf(call);
    this.note(`${name}: client ${call.client}.${what}`);
    const ended = (outcome: string) => {
      this.note(`${name}: ${outcome}`, outcome);
      this.judge(() => this.model.ended(call, outcome));
    };
    made(controller.signal).then(
      (granted) => {
        if (granted === false) return ended("nothing");
        this.note(`${name}: ${granted}`, call.begun < this.world.now ? "waited" : "granted");
        this.judge(() => this.granted(call, granted));
      },
      (error: unknown) => {
        const code = codeOf(error);
        ended(code === "WAIT_TIMEOUT" ? "nothing" : code);
      },
    );
  }

  /** A call has got what it wants. */
  protected granted(call: C, _granted: Granted): void {
    this.model.granted(call);
  }

  /** Makes a call that must be answered before the next rest, with one of these outcomes. */
  protected expect(what: string, call: Promise<unknown>, ...expected: readonly unknown[]): true {
    this.#unanswered++;
    this.note(what);
    const settled = (outcome: string) => {
      this.#unanswered--;
      this.note(`${what}: ${outcome}`, outcome);
      if (expected.every((each) => outcome !== String(each)))
        this.fail(`${what}: ${outcome}, not ${expected}`);
    };
    call.then(
      (value) => settled(String(value ?? "ok")),
      (error: unknown) => settled(codeOf(error)),
    );
    return true;
  }

  /** An open client, if possible this one. */
  protected open(index: number): number | undefined {
    const open = this.world.inhabitants.flatMap(({ closed }, i) => (closed ? [] : [i]));
    return open.includes(index) ? index : open[0];
  }

  protected clientOf(index: number): Inhabitant["client"] {
    return (this.world.inhabitants[index] as Inhabitant).client;
  }

  #abort(call: C | undefined): boolean {
    if (!call) return false;
    this.note(`${this.model.nameOf(call)}: abort`);
    call.aborted = true;
    this.#controllers.get(call)?.abort(ABORTED);
    return true;
  }

  async #close(client: number): Promise<boolean> {
    const inhabitant = this.world.inhabitants[client] as Inhabitant;
    if (inhabitant.closed) return false;
    // The close must not coincide with the return of the client's own connection.
    await this.world.rest();
    this.note(`client ${client}.close()`);
    this.model.closed.add(client);
    this.closing(client);
    await this.world.close(inhabitant);
    return true;
  }

  async #pass(ms: number, late: number | undefined): Promise<boolean> {
    let end = this.world.now + ms;
    const isNear = (moment: number) => Math.abs(moment - end) < CLEARANCE;
    while (this.model.moments.some(isNear)) end += CLEARANCE;
    const passing = end - this.world.now;
    this.note(late === undefined ? `${passing} ms` : `${passing} ms, client ${late} stalls`);
    this.model.late = late;
    await this.world.pass(passing, late);
    this.model.late = undefined;
    return true;
  }

  #lose(what: "loseReply" | "loseRequest"): true {
    const ours: Matcher = ([verb = "", , ...rest]) =>
      !this.#looking && /^EVAL(SHA)?$/.test(verb) && rest.some((word) => word.includes(this.name));
    const fault = what === "loseReply" ? this.#proxy.cutReplyOf(ours) : this.#proxy.dropRequest(ours);
    void fault.fired.then(() => this.note("the connection is cut", what));
    this.#disarm.push(() => fault.cancel());
    this.note(what);
    return true;
  }

  // Checks

  protected async check(): Promise<void> {
    await this.world.rest();
    this.judge(() => this.model.rest());
    if (this.#unanswered > 0) this.fail("a call is not answered");
    const keys = await this.world.travel();
    for (const [key, ttl] of keys) {
      const lasts = this.lasting.includes(key);
      if (!lasts && (ttl < 0 || ttl > LONGEST_MARK + this.model.slack))
        this.fail(`${key} has a TTL of ${ttl} ms`);
      if (lasts && ttl >= 0) this.fail(`${key} ends in ${ttl} ms`);
    }
    this.#looking = true;
    for (const difference of await this.differences(this.#checks++)) this.fail(difference);
    this.#looking = false;
    this.throwViolation();
  }

  /** Gives up all calls; no channel may have a listener then. */
  async #end(): Promise<void> {
    for (const disarm of this.#disarm) disarm();
    for (const call of this.model.waiting) this.#abort(call);
    this.ending();
    await this.check();
    for (const channel of await this.world.channels(this.name)) this.fail(`somebody listens to ${channel}`);
    this.throwViolation();
    for (const stop of this.#stopListening) stop();
  }

  /** Listens to the clients until the history ends. */
  protected listen(listen: (client: LockClient, index: number) => () => void): void {
    for (const [i, { client }] of this.world.inhabitants.entries())
      this.#stopListening.push(listen(client, i));
  }
}

export function compare(what: string, actual: unknown, expected: unknown): string[] {
  return actual === expected ? [] : [`${what}: ${actual}, not ${expected}`];
}
