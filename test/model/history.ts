/** Runs one history against the library and the model side by side. */
import { type Hold, isLockError, type LockClient } from "../../src/index.js";
import { differences, leftovers } from "./differences.js";
import type * as model from "./parties.js";
import { Violation } from "./parties.js";
import type { Side } from "./rules.js";
import { type Kind, type Pair, pick, Scene } from "./scene.js";
import type { Step } from "./steps.js";
import type { World } from "./world.js";

const ABORTED = new Error("aborted by the history");
/** Milliseconds without an action before and after each moment at which something is due. */
const CLEARANCE = 100;
/** Milliseconds after which a waiter tries by itself that is behind one of its own process, or lets others go first. */
const BACKOFF = 15;
/** An empty wait queue is kept for less than this, and listens. */
const KEPT_EMPTY = 20;

type HeldHold = Pair<Hold, model.Hold>;

export class History {
  /** The actions and their outcomes. */
  readonly log: string[] = [];
  /** The kinds of things that have happened. */
  readonly seen: Set<string> = new Set();
  readonly #scene: Scene;
  readonly #ownerOfWireId = new Map<string, model.Owner>();
  readonly #stopListening: (() => void)[] = [];
  #violation: Violation | undefined;
  /** The latest token. */
  #token = 0n;
  #unanswered = 0;
  #checks = 0;

  constructor(world: World, kind: Kind, name: string) {
    this.#scene = new Scene(world, kind, name);
    for (const { client } of world.inhabitants) this.#listen(client);
  }

  /** @throws Violation if the library does what the model does not allow */
  async run(steps: readonly Step[]): Promise<void> {
    const { model } = this.#scene;
    for (const step of steps) {
      if (model.hasty && !isQuick(step)) await this.#check();
      if (!(await this.#take(step))) continue;
      if (step.hasty && isQuick(step)) {
        model.hasty = true;
        this.#note("at once:");
      } else await this.#check();
    }
    await this.#end();
    for (const stop of this.#stopListening) stop();
  }

  // Steps; each returns false if there is nothing that it could be about

  async #take(step: Step): Promise<boolean> {
    const { holds, held, pending } = this.#scene;
    switch (step.do) {
      case "lock":
      case "tryLock":
        return this.#ask(step);
      case "unlock":
        return this.#unlock(step);
      case "giveBack":
        return this.#giveBack(pick(held, step.hold));
      case "giveBackAny":
        return this.#giveBack(pick(holds, step.hold));
      case "extend":
        return this.#extend(this.#scene.preferHeld(step.hold), step.lease);
      case "abort":
        return this.#abort(pick(pending, step.call));
      case "force":
        return this.#force(step.client, this.#scene.side(step.side));
      case "vanish":
        return this.#vanish();
      case "close":
        return this.#close(step.client);
      case "pass":
        return this.#pass(step.ms);
      case "stall":
        return this.#pass(step.ms, step.client);
    }
  }

  #ask(step: Step & { do: "lock" | "tryLock" }): boolean {
    const { wait, lease } = step;
    const party = this.#scene.party(step.client, step.by);
    if (!party) return false;
    const side = this.#scene.side(step.side);
    const lock = this.#scene.lock(party.model.client, side);
    const controller = new AbortController();
    const options = { signal: controller.signal, owner: party.owner };
    const call =
      step.do === "lock"
        ? () => lock.lock({ wait, lease, ...options })
        : () => lock.tryLock(wait, lease, options);
    const limit = wait ?? (step.do === "lock" ? Number.POSITIVE_INFINITY : 0);
    const asked = this.#scene.model.ask({ owner: party.model, side, wait: limit, lease });
    const name = `call ${this.#scene.calls.push({ real: controller, model: asked }) - 1}`;
    this.#note(`${name}: ${party.text}.${step.do}(${side}, wait ${limit}, lease ${lease ?? "renewed"})`);
    const ended = (outcome: string) => {
      this.#note(`${name}: ${outcome}`, outcome);
      this.#judge(() => this.#scene.model.ended(asked, outcome));
    };
    party.within(call).then(
      (hold) => (hold ? this.#granted(name, asked, hold) : ended("null")),
      (error: unknown) => ended(codeOf(error)),
    );
    return true;
  }

  #unlock(step: Step & { do: "unlock" }): boolean {
    const party = this.#scene.party(step.client, step.by);
    if (!party) return false;
    const side = this.#scene.side(step.side);
    const lock = this.#scene.lock(party.model.client, side);
    const expected = this.#scene.model.unlockInnermost(party.model, side);
    const unlocking = party.within(() => lock.unlock({ owner: party.owner }));
    this.#expect(`${party.text}.unlock(${side})`, unlocking, (outcome) => outcome === expected);
    return true;
  }

  #giveBack(hold: HeldHold | undefined): boolean {
    if (!hold) return false;
    const expected = this.#scene.model.unlock(hold.model);
    const name = this.#scene.nameOf(hold);
    this.#expect(`${name}.unlock()`, hold.real.unlock(), (outcome) => outcome === expected);
    if (hold.real.isHeld) this.#fail(`${name}.isHeld after unlock was called`);
    return true;
  }

  #extend(hold: HeldHold | undefined, lease: number): boolean {
    if (!hold) return false;
    const expected = this.#scene.model.extend(hold.model, lease);
    // If the hold was given back before the answer came, both outcomes are right.
    const isRight = (outcome: string) =>
      outcome === expected || (outcome === "NOT_OWNER" && hold.model.answer !== undefined);
    this.#expect(`${this.#scene.nameOf(hold)}.extend(${lease})`, hold.real.extend(lease), isRight);
    return true;
  }

  #abort(call: Pair<AbortController, model.Call> | undefined): boolean {
    if (!call) return false;
    this.#note(`call ${this.#scene.calls.indexOf(call)}: abort`);
    this.#scene.model.abort(call.model);
    call.real.abort(ABORTED);
    return true;
  }

  #force(client: number, side: Side): boolean {
    const { model } = this.#scene;
    if (model.closed.has(client)) return false;
    const expected = model.force(side);
    const forcing = this.#scene.lock(client, side).forceUnlock();
    this.#expect(`client ${client}.forceUnlock(${side})`, forcing, (outcome) => outcome === expected);
    return true;
  }

  async #vanish(): Promise<boolean> {
    this.#note("the lock's keys are lost");
    this.#scene.model.vanish();
    await this.#scene.world.lose(this.#scene.name);
    return true;
  }

  async #close(client: number): Promise<boolean> {
    const inhabitant = this.#scene.world.inhabitants[client];
    if (!inhabitant || inhabitant.closed) return false;
    this.#scene.model.close(client);
    this.#note(`client ${client}.close()`);
    await this.#scene.world.close(inhabitant);
    return true;
  }

  async #pass(ms: number, late?: number): Promise<boolean> {
    const { world, model } = this.#scene;
    let end = world.now + ms;
    const isNear = (moment: number) => Math.abs(moment - end) < CLEARANCE;
    while (model.moments.some(isNear)) end += CLEARANCE;
    const passing = end - world.now;
    this.#note(late === undefined ? `${passing} ms` : `${passing} ms, client ${late} stalls`);
    if (late !== undefined) model.stall(late, passing);
    await world.pass(passing, late);
    model.late = undefined;
    return true;
  }

  // Events

  #granted(name: string, call: model.Call, real: Hold): void {
    const { model, world, holds } = this.#scene;
    const how = call.nested ? "nested" : call.begun < world.now ? "waited" : "granted";
    this.#note(`${name}: hold ${holds.length}`, how);
    this.#judge(() => {
      const hold = { real, model: model.granted(call) };
      this.#checkNovelty(real, call);
      holds.push(hold);
      real.signal.addEventListener("abort", () => this.#lost(hold));
    });
  }

  /** A wire id is never used again after its holds were all given back, and tokens rise. */
  #checkNovelty(real: Hold, { owner, nested }: model.Call): void {
    const { kind, model } = this.#scene;
    const known = this.#ownerOfWireId.get(real.ownerId);
    this.#ownerOfWireId.set(real.ownerId, owner);
    // A call that was made in the tick of the last unlock may still be nested.
    const outermost = !nested && !model.hasty && model.holds.liveOf(owner).length === 1;
    if (known && (known !== owner || outermost)) throw new Violation(`${real.ownerId} is used again`);
    const token = kind.token?.(real) ?? 0n;
    if (token < this.#token || (outermost && kind.token && token === this.#token)) {
      throw new Violation(`token ${token} after ${this.#token}`);
    }
    this.#token = token;
  }

  #lost(hold: HeldHold): void {
    const { reason } = hold.real.signal.reason as { reason: string };
    this.#note(`${this.#scene.nameOf(hold)}: lost, ${reason}`, `lost, ${reason}`);
    this.#judge(() => this.#scene.model.lost(hold.model, reason));
  }

  #listen(client: LockClient): void {
    const renewed = ({ ownerId = "" }) => {
      const owner = this.#ownerOfWireId.get(ownerId);
      if (!owner) return;
      this.#note(`renewed ${ownerId.replace(/.*:/, "")}`, "renewed");
      this.#judge(() => this.#scene.model.holds.renew(owner));
    };
    const failed = ({ cause }: { cause: unknown }) => this.#fail(`error event: ${String(cause)}`);
    client.on("renewed", renewed).on("error", failed);
    this.#stopListening.push(() => client.off("renewed", renewed).off("error", failed));
  }

  /** The call must be answered before the next rest, with a right outcome. */
  #expect(what: string, call: Promise<unknown>, isRight: (outcome: string) => boolean): void {
    this.#unanswered++;
    this.#note(what);
    const settled = (outcome: string) => {
      this.#unanswered--;
      this.#note(`${what}: ${outcome}`, outcome);
      if (!isRight(outcome)) this.#fail(`${what}: ${outcome} is wrong`);
    };
    call.then(
      (value) => settled(String(value ?? "ok")),
      (error: unknown) => settled(codeOf(error)),
    );
  }

  async #check(): Promise<void> {
    await this.#scene.world.rest();
    if (this.#scene.model.anyAsleep) await this.#pass(BACKOFF);
    this.#judge(() => this.#scene.model.rest());
    if (this.#unanswered > 0) this.#fail("a call is not answered");
    for (const difference of await differences(this.#scene, this.#checks++)) this.#fail(difference);
    if (this.#violation) throw this.#violation;
  }

  /** Gives up all calls and gives back all holds; nothing may be left of them. */
  async #end(): Promise<void> {
    for (const call of this.#scene.pending) this.#abort(call);
    await this.#check();
    for (const hold of this.#scene.held.reverse()) this.#giveBack(hold);
    await this.#check();
    await this.#pass(KEPT_EMPTY);
    for (const leftover of await leftovers(this.#scene)) this.#fail(leftover);
    if (this.#violation) throw this.#violation;
  }

  // Helpers

  #note(text: string, seen?: string): void {
    this.log.push(`${String(this.#scene.world.now).padStart(9)}  ${text}`);
    if (seen !== undefined) this.seen.add(seen);
  }

  #judge(judgement: () => void): void {
    try {
      judgement();
    } catch (error) {
      this.#fail(error instanceof Violation ? error.message : String(error));
    }
  }

  /** Notes a violation; the first one counts. */
  #fail(text: string): void {
    this.#note(`VIOLATION: ${text}`);
    this.#violation ??= new Violation(text);
  }
}

/** Steps that may share a tick: they let no time pass, and take nothing from any owner. */
function isQuick(step: Step): boolean {
  return !["pass", "stall", "force", "vanish", "close"].includes(step.do);
}

function codeOf(error: unknown): string {
  if (error === ABORTED) return "aborted";
  return isLockError(error) ? error.code : String(error);
}
