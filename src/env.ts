/** What all locks of one client share. The client makes it and passes it down: it is no global. */
import type { Clock } from "./base/clock.js";
import { ClientClosedError } from "./base/errors.js";
import type { Events } from "./base/events.js";
import type { WhoHolds } from "./base/holder.js";
import { LiveSet } from "./base/live-set.js";
import { Places } from "./lock/dropped.js";
import type { Grant } from "./lock/grant.js";
import type { Router } from "./pubsub/router.js";
import type { CommandRunner } from "./redis/command-runner.js";
import type { Replicas } from "./redis/replicas.js";
import type { Sites } from "./waiting/sites.js";
import type { Watchdog } from "./watchdog/watchdog.js";

export interface Settings {
  readonly watchdogTimeout: number;
  readonly drift: number;
  readonly commandTimeout: number;
  readonly pollCap: number;
  readonly fairWaitTimeout: number;
  readonly traceHolds: boolean;
  /** Milliseconds; 0 for never. */
  readonly warnAfter: number;
  readonly reentrancy: "context" | "explicit";
  /** From 0 up to 1. */
  readonly random: () => number;
  /** The clock is the server's own, and its timers fire when they are due: a waiter tries as a TTL ends. */
  readonly exactTimers: boolean;
}

/** What a client makes first; the rest of its {@link Env} needs these. */
export type EnvParts = Pick<
  Env,
  "clientId" | "settings" | "clock" | "runner" | "router" | "events" | "replicas" | "stir" | "whoHolds"
>;

export class Env {
  readonly clientId: string;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly runner: CommandRunner;
  readonly router: Router;
  readonly events: Events;
  /** Sends grants that replicas must acknowledge; undefined if the client does not ask for that. */
  readonly replicas: Replicas | undefined;
  /** Called when the client begins to hold or to wait. */
  readonly stir: () => void;
  readonly whoHolds: WhoHolds;
  /** Calls that name no owner act for that of the scope or run around them. */
  readonly followsContext: boolean;
  /** Notes where calls were made, for warnings. */
  readonly places: Places = new Places();
  sites!: Sites;
  /** Grants that are held; those that let nobody else in by lock key. */
  live!: LiveSet<Grant>;
  watchdog!: Watchdog;
  /** New calls are refused. Holds may still be given back. */
  closed = false;
  /** The client sends nothing any more. */
  ended = false;
  /** Pieces of work that go on after their calls were answered. */
  #unsettled = 0;
  readonly #onSettled: (() => void)[] = [];
  #minted = 0;

  constructor(parts: EnvParts) {
    this.clientId = parts.clientId;
    this.settings = parts.settings;
    this.followsContext = parts.settings.reentrancy === "context";
    this.clock = parts.clock;
    this.runner = parts.runner;
    this.router = parts.router;
    this.events = parts.events;
    this.replicas = parts.replicas;
    this.stir = parts.stir;
    this.whoHolds = parts.whoHolds;
  }

  /** A number that this client has not used before. */
  mint(): number {
    return ++this.#minted;
  }

  /** Fresh for each outermost acquisition, so that a late command can never touch a later hold. */
  wireId(number: number = this.mint()): string {
    return `${this.clientId}:${number}`;
  }

  /** A set of what is held: while there is something in it, the client keeps its connections, and tells others of it. */
  liveSet<T>(): LiveSet<T> {
    const { alive } = this.runner;
    const added = () => {
      alive.need();
      this.stir();
    };
    return new LiveSet(added, () => alive.release());
  }

  assertOpen(lockName: string): void {
    if (this.closed) throw new ClientClosedError(lockName);
  }

  /** Work that goes on after its call was answered. `close()` waits for it, and its failure is ignored. */
  settle(work: Promise<unknown>): void {
    this.workBegun();
    const done = () => this.workDone();
    work.then(done, done);
  }

  /** As {@link settle}, for work that ends by {@link workDone}. */
  workBegun(): void {
    this.#unsettled++;
  }

  workDone(): void {
    if (--this.#unsettled > 0 || this.#onSettled.length === 0) return;
    for (const callback of this.#onSettled.splice(0)) callback();
  }

  /** Resolves when no work of {@link settle} or {@link workBegun} is left. */
  settled(): Promise<void> {
    return this.#unsettled ? new Promise((resolve) => this.#onSettled.push(resolve)) : Promise.resolve();
  }
}
