/** What all locks of one client share. Made by the client; passed down, never reached for. */
import type { Clock } from "../base/clock.js";
import { ClientClosedError } from "../base/errors.js";
import type { Events } from "../base/events.js";
import type { WhoHolds } from "../base/holder.js";
import type { Engine } from "../engine/engine.js";
import type { Router } from "../pubsub/router.js";
import type { CommandRunner } from "../redis/command-runner.js";
import type { KnownMasters } from "../redis/known-masters.js";
import type { Renewer } from "../watchdog/watchdog.js";
import type { LongHolds } from "./long-holds.js";
import type { Replicas } from "./replicas.js";

export interface Settings {
  readonly watchdogTimeout: number;
  readonly drift: number;
  readonly commandTimeout: number;
  readonly pollCap: number;
  readonly fairWaitTimeout: number;
  readonly traceHolds: boolean;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** How holds are renewed: batches of each are sent together. */
export interface Renewers {
  /** Of holds that live as long as their lock: plain, fenced, fair, and the write side. */
  readonly lock: Renewer;
  /** Of read holds, which have leases of their own. */
  readonly read: Renewer;
}

export interface EnvParts {
  readonly clientId: string;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly runner: CommandRunner;
  readonly masters: KnownMasters;
  readonly router: Router;
  readonly engine: Engine;
  readonly renewers: Renewers;
  readonly events: Events;
  readonly replicas: Replicas | undefined;
  readonly longHolds: LongHolds | undefined;
  readonly stir: () => void;
  readonly whoHolds: WhoHolds;
}

export class Env {
  readonly clientId: string;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly runner: CommandRunner;
  readonly masters: KnownMasters;
  readonly router: Router;
  readonly engine: Engine;
  readonly renewers: Renewers;
  readonly events: Events;
  /** How grants are acknowledged by replicas; undefined when none are asked for. */
  readonly replicas: Replicas | undefined;
  /** Who tells of holds that last; undefined without the option. */
  readonly longHolds: LongHolds | undefined;
  /** Told when something is held from now on. */
  readonly stir: () => void;
  readonly whoHolds: WhoHolds;
  /** No new calls; what is held may still be given back. */
  closed = false;
  /** Nothing is sent any more. */
  ended = false;
  /** Pieces of work that go on after their calls were answered. */
  #unsettled = 0;
  readonly #onSettled: (() => void)[] = [];
  #minted = 0;

  constructor(parts: EnvParts) {
    this.clientId = parts.clientId;
    this.settings = parts.settings;
    this.clock = parts.clock;
    this.runner = parts.runner;
    this.masters = parts.masters;
    this.router = parts.router;
    this.engine = parts.engine;
    this.renewers = parts.renewers;
    this.events = parts.events;
    this.replicas = parts.replicas;
    this.longHolds = parts.longHolds;
    this.stir = parts.stir;
    this.whoHolds = parts.whoHolds;
  }

  /** By what owners know the lock of this key. */
  lockKey(key: string): string {
    return `${this.clientId}/${key}`;
  }

  /** A number that this client has not used before. */
  mint(): number {
    return ++this.#minted;
  }

  /** Fresh for each outermost acquisition, so that a late command can never touch a later hold. */
  wireId(number: number = this.mint()): string {
    return `${this.clientId}:${number}`;
  }

  /** A name for one call of a wire id. */
  callId(wireId: string): string {
    return `${wireId}:${this.mint()}`;
  }

  assertOpen(lockName: string): void {
    if (this.closed) throw new ClientClosedError(lockName);
  }

  /** Work that goes on after its call was answered: `close()` waits for it, and nobody is troubled by its failure. */
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

  /** Resolves when no such work is left. */
  settled(): Promise<void> {
    return this.#unsettled ? new Promise((resolve) => this.#onSettled.push(resolve)) : Promise.resolve();
  }
}
