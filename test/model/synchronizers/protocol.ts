/** What happened in one history, and the first violation. */
import { isLockError } from "../../../src/index.js";
import { Violation } from "../parties.js";

export const ABORTED: Error = new Error("aborted by the history");

export class Protocol {
  /** The actions and their outcomes. */
  readonly log: string[] = [];
  /** The kinds of things that have happened. */
  readonly seen: Set<string> = new Set();
  readonly #time: { readonly now: number };
  #violation: Violation | undefined;

  constructor(time: { readonly now: number }) {
    this.#time = time;
  }

  protected note(text: string, seen?: string): void {
    this.log.push(`${String(this.#time.now).padStart(9)}  ${text}`);
    if (seen !== undefined) this.seen.add(seen);
  }

  protected judge(judgement: () => void): void {
    try {
      judgement();
    } catch (error) {
      this.fail(error instanceof Violation ? error.message : String(error));
    }
  }

  /** Notes a violation; the first one counts. */
  protected fail(text: string): void {
    this.note(`VIOLATION: ${text}`);
    this.#violation ??= new Violation(text);
  }

  protected throwViolation(): void {
    if (this.#violation) throw this.#violation;
  }
}

/** The model's word for a rejection. */
export function codeOf(error: unknown): string {
  if (error === ABORTED) return "aborted";
  return isLockError(error) ? error.code : String(error);
}
