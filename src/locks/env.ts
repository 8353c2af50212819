/** What all locks of one client share. Made by the client; passed down, never reached for. */
import type { Clock } from "../base/clock.js";
import { ClientClosedError } from "../base/errors.js";
import type { Events } from "../base/events.js";
import { type Item, List } from "../base/list.js";
import type { Engine } from "../engine/engine.js";
import type { Router } from "../pubsub/router.js";
import type { Link } from "../redis/link.js";
import type { Renewer, Watchdog } from "../watchdog/watchdog.js";
import type { Primitive } from "./primitive.js";
import type { Replicas } from "./replicas.js";

export interface Settings {
  readonly watchdogTimeout: number;
  readonly drift: number;
  readonly commandTimeout: number;
  readonly pollCap: number;
  readonly fairWaitTimeout: number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

/** Something that this client has to give back before it is closed. */
export interface Live extends Item {
  /** The client closes: it ends now and is given back. */
  loseByClose(): void;
}

/** The holds of one owner on one lock, as what happens to the whole lock or the whole client sees them. */
export interface LiveHoldings extends Live {
  /** The wire id, if a live hold is on this side of the lock. */
  wireIdOn(primitive: Primitive): string | undefined;
  /** Whether a live hold that `lock()` or `tryLock()` took is on this side of the lock. */
  hasBareHold(primitive: Primitive): boolean;
  /** This client gave the lock back by force while the owner held it under this wire id. */
  loseByForce(primitive: Primitive, wireId: string): void;
  /** Another client of this process gave this side of the lock back by force. */
  hearOfForce(primitive: Primitive): void;
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
  readonly link: Link;
  readonly router: Router;
  readonly engine: Engine;
  readonly watchdog: Watchdog;
  readonly renewers: Renewers;
  readonly events: Events;
  readonly replicas: Replicas | undefined;
}

export class Env {
  readonly clientId: string;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly link: Link;
  readonly router: Router;
  readonly engine: Engine;
  readonly watchdog: Watchdog;
  readonly renewers: Renewers;
  readonly events: Events;
  /** How grants are acknowledged by replicas; undefined when none are asked for. */
  readonly replicas: Replicas | undefined;
  /** No new calls; what is held may still be given back. */
  closed = false;
  /** Nothing is sent any more. */
  ended = false;
  /** Of owners that have a hold. */
  readonly live: List<LiveHoldings> = new List();
  /** Permits that are looked after. */
  readonly permits: List<Live> = new List();
  /** Pieces of work that go on after their calls were answered. */
  #unsettled = 0;
  readonly #onSettled: (() => void)[] = [];
  readonly #onIdle: (() => void)[] = [];
  #minted = 0;
  readonly #done = () => {
    if (--this.#unsettled === 0) this.#tell(this.#onSettled);
  };

  constructor(parts: EnvParts) {
    this.clientId = parts.clientId;
    this.settings = parts.settings;
    this.clock = parts.clock;
    this.link = parts.link;
    this.router = parts.router;
    this.engine = parts.engine;
    this.watchdog = parts.watchdog;
    this.renewers = parts.renewers;
    this.events = parts.events;
    this.replicas = parts.replicas;
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
    this.#unsettled++;
    work.then(this.#done, this.#done);
  }

  /** Marks that an owner has its last hold on a lock behind it. */
  rested(holdings: LiveHoldings): void {
    if (this.live.remove(holdings)) this.#checkIdle();
  }

  /** Marks that a permit needs no looking after any more. */
  dropped(permit: Live): void {
    if (this.permits.remove(permit)) this.#checkIdle();
  }

  /** Resolves when no hold is live and no permit is looked after. */
  idle(): Promise<void> {
    return this.#isIdle ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  get #isIdle(): boolean {
    return !this.live.first && !this.permits.first;
  }

  #checkIdle(): void {
    if (this.#isIdle) this.#tell(this.#onIdle);
  }

  #tell(callbacks: (() => void)[]): void {
    if (callbacks.length > 0) for (const callback of callbacks.splice(0)) callback();
  }

  /** Resolves when no such work is left. */
  settled(): Promise<void> {
    return this.#unsettled ? new Promise((resolve) => this.#onSettled.push(resolve)) : Promise.resolve();
  }
}
