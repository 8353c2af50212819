/** The calls of an actor for each kind, which both sides make by the same names. */
import { isLockError } from "../../../src/index.js";
import { argumentsOf, type Subject } from "../calls.js";
import { type Party, saysNotOwner } from "../party.js";

export type Kind = "lock" | "fair" | "fenced" | "readwrite" | "semaphore" | "permits" | "latch";

export interface Call {
  readonly verb: string;
  /** The side of a read-write lock. */
  readonly side?: "read" | "write" | undefined;
  /** Milliseconds; without a lease the watchdog renews, or a permit has no end. */
  readonly lease?: number | undefined;
  /** Milliseconds. */
  readonly wait?: number | undefined;
  readonly permits?: number | undefined;
  /** A permit's id as this side knows it. */
  readonly permitId?: string | undefined;
}

/** The outcome of a call: its result, or its refusal. */
export type Outcome = string | number | boolean | null;

/** Milliseconds on both sides, so long that nothing is renewed during a sequence. */
export const WATCHDOG = 300_000;

/** One owner of a client of this library, or one Java thread, that uses one name. */
export class Actor<P extends Party = Party> {
  readonly party: P;
  readonly #kind: Kind;
  readonly #name: string;

  constructor(party: P, kind: Kind, name: string) {
    this.party = party;
    this.#kind = kind;
    this.#name = name;
  }

  async perform({ verb, side, ...given }: Call): Promise<Outcome> {
    const [subject, calls] = this.#calls(side);
    const names = argumentsOf(subject)[verb];
    const call = (calls as Record<string, (...args: unknown[]) => Promise<Outcome | undefined>>)[verb];
    if (!names || !call) throw new Error(`there is no ${verb} of a ${subject}`);
    const values: Readonly<Record<string, unknown>> = { ...given, count: given.permits };
    try {
      return (await call(...names.map((name) => values[name]))) ?? null;
    } catch (error) {
      if (saysNotOwner(error)) return "not the owner";
      if (isLockError(error, "UPGRADE_REFUSED")) return false;
      throw error;
    }
  }

  #calls(side: Call["side"]): [Subject, object] {
    const [kind, name] = [this.#kind, this.#name];
    if (kind === "semaphore" || kind === "permits" || kind === "latch") return [kind, this.party[kind](name)];
    return ["lock", this.party.lock(kind === "readwrite" ? (side ?? "write") : kind, name)];
  }
}
