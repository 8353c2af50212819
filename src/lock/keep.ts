/** The command of a grant that goes on: it raises the TTL, notes the counts, or ends the write side. */
import { LockLostError } from "../base/errors.js";
import type { Downgrading, Kind } from "../kinds/kind.js";
import { Command } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Grant } from "./grant.js";

export class Keep extends Command {
  readonly #grant: Grant;
  /** Milliseconds to grant; without it the TTL stays. */
  readonly #lease: number | undefined;
  /** It ends the write side: it is sent until it is answered, for other readers wait for it. */
  readonly #isDowngrade: boolean;
  readonly #term: number;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;

  constructor(grant: Grant, lease?: number, isDowngrade = false) {
    super(grant.env.runner);
    this.#grant = grant;
    this.#lease = lease;
    this.#isDowngrade = isDowngrade;
    this.#term = grant.term;
  }

  get lockName(): string {
    return this.#grant.lockName;
  }

  /** @throws LOCK_LOST if the grant turns out to be gone, UNAVAILABLE without an answer */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.begin();
    });
  }

  protected override goesOn(): boolean {
    if (!this.#isDowngrade) return false;
    this.failed(this.unavailable());
    return this.#grant.state === "held";
  }

  protected override request(): ScriptCall {
    const grant = this.#grant;
    const { kind, wireId, reads, remaining } = grant;
    // A TTL is never lowered, so the least lease changes nothing.
    if (!this.#isDowngrade) return kind.keep(wireId, grant, this.#lease ?? 1);
    const left = Math.max(1, Math.ceil(remaining));
    return (kind as Kind & Downgrading).downgrade(wireId, Math.max(1, reads), left);
  }

  protected override answered(reply: unknown): void {
    const grant = this.#grant;
    const found = Number((reply as unknown[]).at(-1));
    grant.check();
    if (grant.has(found)) {
      if (this.#lease !== undefined) grant.raise(this.sentAt, this.#lease, this.#term);
      if (grant.state !== "over") return this.#resolve();
    } else if (grant.state === "held") {
      return this.#reject(grant.gone(found));
    }
    // Its own END was executed first: that one's answer counts.
    if (grant.end) return void grant.end.again().then(this.#resolve, this.#reject);
    this.#reject(grant.loss ?? new LockLostError(this.lockName, "expired", grant.clock.wall()));
  }

  protected override failed(error: unknown): void {
    this.#reject(error);
  }
}
