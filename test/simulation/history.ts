/**
 * The claims of a simulation about its locks form a history that is linearizable or not. It has each call, and each
 * hold that may have ended without a call. It has only what the processes know; what they were not told is open.
 */
import {
  type LockAnswer,
  type LockCall,
  mutex,
  readWriteLock,
  type SemaphoreAnswer,
  type SemaphoreCall,
  semaphore,
} from "../fleet/specs.js";
import {
  checkLinearizable,
  type History,
  type Operation,
  type Outcome,
  type Verdict,
} from "../fleet/wing-gong.js";
import { type Call, MEMBERS, NAME, type Stay } from "./process.js";
import type { Schedule } from "./schedule.js";
import type { Simulation } from "./simulation.js";

type Do = "acquire" | "release" | "expire";
type Answer = LockAnswer & SemaphoreAnswer;

interface Span {
  readonly invoked: number;
  /** Infinity while the operation is open. */
  readonly settled: number;
}

/** The most states that are searched before the result is "undecided": many times what nearly all searches need. */
const MOST = 400_000;
const OPEN = Number.POSITIVE_INFINITY;

/**
 * Kinds in which a single try is refused only because of a holder; in other kinds another call may just have come
 * first.
 */
const CANDID: readonly string[] = ["lock", "fenced", "semaphore"];

/** Kinds of which an unknown grant that has lapsed is looked for before the known one. */
const MUTEXES: readonly string[] = ["lock", "fenced"];

/** Faults after which unanswered commands are repeated: the first may have been granted without anyone knowing. */
const SENT_AGAIN: readonly string[] = ["drop", "cut", "restart", "failover"];

export function judge(simulation: Simulation): { readonly length: number; readonly verdict: Verdict } {
  const history = new Claims(simulation).history();
  return { length: history.length, verdict: check(simulation.schedule, history) };
}

function check({ kind, permits }: Schedule, history: History): Verdict {
  if (kind === "semaphore" || kind === "permits")
    return checkLinearizable(history as History<SemaphoreCall, SemaphoreAnswer>, semaphore(permits), MOST);
  const spec = kind === "readwrite" ? readWriteLock : mutex;
  return checkLinearizable(history as History<LockCall, LockAnswer>, spec, MOST);
}

/** The first answer that does not fit, in words. */
export function refutationOf({ name, refuted }: Verdict & { readonly linearizable: false }): string {
  const { caller, call, invoked, settled } = refuted as Operation<LockCall>;
  const what = [call.do, call.side].filter(Boolean).join(" ");
  return `${name} is not linearizable: no order explains the ${what} of ${caller} (from ${invoked} to ${settled})`;
}

class Claims {
  readonly #schedule: Schedule;
  readonly #calls: readonly Call[];
  readonly #stays: ReadonlyMap<Call, Stay>;
  /** When a server lost or lacked what it had granted, or had to take it away: from then on nothing is promised. */
  readonly #end: number;
  readonly #operations: Operation<LockCall | SemaphoreCall, Answer>[] = [];

  constructor({ schedule, calls, stays, losses, thefts }: Simulation) {
    this.#schedule = schedule;
    this.#calls = calls;
    this.#stays = new Map(stays.map((stay) => [stay.call, stay]));
    this.#end = Math.min(...losses, ...thefts, OPEN);
  }

  history(): History<LockCall | SemaphoreCall, Answer> {
    for (const call of this.#calls) {
      const stay = this.#stays.get(call);
      if (stay) this.#granted(stay);
      else this.#notGranted(call);
    }
    return this.#operations;
  }

  #granted(stay: Stay): void {
    const { call, granted, token, heldUntil, leftAt = OPEN, overAt = OPEN, isDone } = stay;
    const { whose, invoked } = call;
    const answer = token === undefined ? { granted: true } : { granted: true, token };
    // Of other kinds a search with so many open operations takes too long.
    if (MUTEXES.includes(this.#schedule.kind) && this.#isSentAgain(invoked, granted)) this.#unknown(call);
    this.#add(call, whose, "acquire", { invoked, settled: granted }, answer as Answer);
    if (isDone)
      this.#add(call, whose, "release", { invoked: leftAt, settled: overAt }, { released: true } as Answer);
    // From then on its lease may end, and a release without an answer is repeated until it has one.
    else this.#add(call, whose, "release", { invoked: heldUntil, settled: OPEN });
  }

  #notGranted(call: Call): void {
    const { step, whose, invoked, settled = OPEN, outcome, code } = call;
    const isBare = step.owner === undefined;
    if (code === "UPGRADE_REFUSED") {
      this.#add(call, whose, "acquire", { invoked, settled }, {
        granted: false,
        because: "upgrade",
      } as Answer);
      return;
    }
    if (outcome === "refused" && step.wait === 0 && !this.#isSentAgain(invoked, settled)) {
      const answer = { granted: false, because: "held" } as Answer;
      if (isBare && CANDID.includes(this.#schedule.kind))
        this.#add(call, whose, "acquire", { invoked, settled }, answer);
      return;
    }
    this.#unknown(call);
  }

  /** The call may have got an unknown grant, open-ended, which counts as another owner's. */
  #unknown(call: Call): void {
    const { whose, invoked } = call;
    const stranger = `${whose} at ${invoked}`;
    const open = { invoked, settled: OPEN };
    this.#add(call, stranger, "acquire", open);
    this.#add(call, stranger, "release", open);
  }

  #isSentAgain(since: number, until: number): boolean {
    const { steps } = this.#schedule;
    return steps.some(({ do: what, at }) => SENT_AGAIN.includes(what) && since <= at && at <= until);
  }

  #add({ step }: Call, caller: string, what: Do, { invoked, settled }: Span, answer?: Answer): void {
    if (invoked >= this.#end) return;
    const isKnown = answer !== undefined && settled < this.#end;
    const outcome: Outcome<Answer> = isKnown ? { kind: "ok", answer } : { kind: "unknown" };
    const side = step.shared ? "read" : "write";
    for (const name of this.#namesOf(step.members)) {
      const operation = { name, caller, call: { do: what, side } as LockCall, invoked, outcome };
      this.#operations.push({ ...operation, settled: isKnown ? settled : OPEN });
    }
  }

  #namesOf(members: readonly number[] | undefined): readonly string[] {
    return members?.map((member) => MEMBERS[member] as string) ?? [NAME];
  }
}
