/** The commands of a grant that goes on: they raise its TTL, note its counts, or end its write side. */
import { LockLostError } from "../base/errors.js";
import type { Downgrading, Kind } from "../kinds/kind.js";
import { Command } from "../redis/command.js";
import type { ScriptCall } from "../scripts/script.js";
import type { Grant } from "./grant.js";

/** A command of a grant, whose outcome is a promise. */
abstract class OfGrant extends Command {
  readonly grant: Grant;
  #resolve!: () => void;
  #reject!: (error: unknown) => void;

  constructor(grant: Grant) {
    super(grant.env.runner);
    this.grant = grant;
  }

  get lockName(): string {
    return this.grant.lockName;
  }

  /** @throws LOCK_LOST if the grant turns out to be gone, UNAVAILABLE without an answer */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.begin();
    });
  }

  /** The server has found the grant, or not. */
  protected settle(found: number): void {
    const { grant } = this;
    grant.check();
    if (grant.has(found)) {
      if (grant.state === "held" || grant.state === "ending") return this.#resolve();
    } else if (grant.state === "held") {
      return this.#reject(grant.gone(found));
    }
    // Its own END was executed first: that one's answer counts.
    const { ended, loss } = grant;
    if (ended) return void ended.then(this.#resolve, this.#reject);
    this.#reject(loss ?? new LockLostError(this.lockName, "expired", grant.clock.wall()));
  }

  protected override failed(error: unknown): void {
    this.#reject(error);
  }
}

/** Notes the counts, and raises the TTL if a `lease` is given. */
export class Keep extends OfGrant {
  readonly #lease: number | undefined;
  readonly #term: number;

  constructor(grant: Grant, lease?: number) {
    super(grant);
    this.#lease = lease;
    this.#term = grant.term;
  }

  protected override request(): ScriptCall {
    // A TTL is never lowered, so the least lease changes nothing.
    return this.grant.kind.keep(this.grant.wireId, this.grant, this.#lease ?? 1);
  }

  protected override answered(reply: unknown): void {
    const [found] = reply as unknown[];
    const { grant } = this;
    if (this.#lease !== undefined && grant.isHeld && grant.has(Number(found))) {
      grant.raise(this.sentAt, this.#lease, this.#term);
    }
    this.settle(Number(found));
  }
}

/** Ends the write side; it is sent until it is answered, for other readers wait for it. */
export class Downgrade extends OfGrant {
  protected override goesOn(): boolean {
    this.failed(this.unavailable());
    return this.grant.state === "held";
  }

  protected override request(): ScriptCall {
    const { kind, wireId, reads, remaining } = this.grant;
    return (kind as Kind & Downgrading).downgrade(
      wireId,
      Math.max(1, reads),
      Math.max(1, Math.ceil(remaining)),
    );
  }

  protected override answered(reply: unknown): void {
    const [, found] = reply as unknown[];
    this.settle(Number(found));
  }
}
