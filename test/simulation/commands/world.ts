/** Time, chance and the network of one history. All of it follows from the seed. */
import { TestClock } from "../../../src/entries/testing/clock.js";
import type { Reply } from "../../../src/entries/testing/reply.js";
import { Random } from "../../support/random.js";
import type { Answer, Command, Lock, Standing } from "./lock.js";

/** Milliseconds: how long a call waits for an answer, how long a waiter sleeps at most, and how late a command may be. */
export const TIMEOUT = 40;
export const POLL = 50;
export const LATEST = 300;

/** A clock that goes where it is told. */
class StepClock extends TestClock {
  goTo(ms: number): void {
    this.now = ms;
  }
}

/** An answer, and what was true on the server: when the first copy was executed, and when this one was. */
export interface Heard extends Answer {
  readonly first: Standing | undefined;
  readonly seen: Standing | undefined;
}

export interface Listener {
  answered(heard: Heard, isLate: boolean): void;
  /** There was no answer in time. Without it the command is sent until it is answered. */
  silent?(): void;
}

interface Event {
  readonly at: number;
  /** Returns false if nothing has happened. */
  readonly happen: () => unknown;
}

export class World {
  readonly clock: StepClock = new StepClock(1_700_000_000_000);
  readonly random: Random;
  /** How many of the commands meet trouble. */
  readonly trouble: number;
  /** The mistake that is planted in the rules of the clients. */
  readonly mistake: string | undefined;
  readonly figures: Record<string, number> = {};
  now = 0;
  failure: string | undefined;
  #agenda: Event[] = [];
  /** When the last untroubled command of a connection arrives, and its last answer. */
  readonly #arrivals = new Map<string, number>();
  readonly #steps: string[] | undefined;

  constructor(seed: number, mistake: string | undefined, steps: string[] | undefined) {
    this.random = new Random(seed);
    this.trouble = this.random.next() / 2;
    this.mistake = mistake;
    this.#steps = steps;
    // What Redis draws by chance follows from the seed, too.
    Math.random = () => this.random.next();
  }

  /** Whether the clients make this mistake. */
  errs(mistake: string): boolean {
    return this.mistake === mistake;
  }

  count(what: string): void {
    this.figures[what] = (this.figures[what] ?? 0) + 1;
  }

  note(text: () => string): void {
    this.#steps?.push(`${this.now} ${text()}`);
  }

  fail(text: string): void {
    this.failure ??= text;
    this.note(() => `FAILED: ${text}`);
  }

  after(ms: number, happen: Event["happen"]): void {
    const event = { at: this.now + ms, happen };
    let place = this.#agenda.length;
    while (place > 0 && (this.#agenda[place - 1] as Event).at > event.at) place--;
    this.#agenda.splice(place, 0, event);
  }

  /** Lets time go on, from event to event. */
  run(until: number, check: () => void): void {
    while (this.failure === undefined && (this.#agenda[0]?.at ?? Infinity) <= until) {
      const { at, happen } = this.#agenda.shift() as Event;
      this.#goTo(at);
      if (happen() !== false) check();
    }
    this.#goTo(until);
    check();
  }

  #goTo(at: number): void {
    this.now = at;
    this.clock.goTo(at);
  }

  /** Delivers a command once; or, if it meets trouble, one to three times, in any order, and with answers lost. */
  send(client: string, lock: Lock, command: Command, { answered, silent }: Listener): void {
    const isTroubled = this.random.chance(this.trouble);
    const copies = isTroubled ? 1 + this.random.below(3) : 1;
    const connection = `${client} ${lock.name}`;
    let [isOver, isLate, first]: [boolean, boolean, Standing | undefined] = [false, false, undefined];
    for (let copy = 1; copy <= copies; copy++) {
      const isHeard = !isTroubled || (!silent && copy === copies) || this.random.chance(0.6);
      this.after(this.#delay(`to ${connection}`, isTroubled, LATEST), () => {
        const { seen, ...answer } = lock.execute(command);
        first ??= seen;
        this.note(
          () => `  ${lock.name}: ${command.text} -> ${show(answer.reply)}${isHeard ? "" : " (answer lost)"}`,
        );
        if (!isHeard) return;
        this.after(this.#delay(`from ${connection}`, isTroubled, 60), () => {
          if (isOver) return false;
          isOver = true;
          this.note(
            () => `${client} hears of ${command.text}: ${show(answer.reply)}${isLate ? " (late)" : ""}`,
          );
          answered({ ...answer, first, seen }, isLate);
        });
      });
    }
    if (!silent) return;
    this.after(TIMEOUT, () => {
      if (isOver) return false;
      isLate = true;
      this.note(() => `${client} hears nothing of ${command.text}`);
      silent();
    });
  }

  #delay(connection: string, isTroubled: boolean, latest: number): number {
    if (isTroubled) return 1 + this.random.below(latest);
    const at = Math.max(this.now + 1 + this.random.below(4), this.#arrivals.get(connection) ?? 0);
    this.#arrivals.set(connection, at);
    return at - this.now;
  }
}

function show(reply: Reply): string {
  return Array.isArray(reply) ? `{${reply.map(show).join(" ")}}` : String(reply);
}
