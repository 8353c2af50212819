/** The sites of a client, by name, and how long their first waiters sleep. */
import type { LiveSet } from "../base/live-set.js";
import { SharedTimeout } from "../base/shared-timeout.js";
import type { Env } from "../env.js";
import { Site } from "./site.js";
import { Waiter } from "./waiter.js";

/** Added to a TTL before the next try: PTTL is truncated, and a timer may fire a millisecond early. */
const MARGIN = 2;
const SHORTEST_SLEEP = 5;
const LONGEST_JITTER = 50;
/** Milliseconds for which an empty site is kept: calls that share a lock in a loop come back at once. */
const KEPT = 20;

export class Sites {
  readonly env: Env;
  readonly kept: SharedTimeout<Site>;
  /** Calls that may stand without a command of their own: they wait, or their members have the commands. */
  readonly calls: LiveSet<Waiter>;
  readonly #sites = new Map<string, Site>();

  constructor(env: Env) {
    this.env = env;
    this.calls = env.liveSet();
    this.kept = new SharedTimeout(env.clock, KEPT);
  }

  /** The site of those that want this. Its name is not made while nobody waits for anything. */
  get(wanted: { readonly siteName: string }): Site | undefined {
    return this.#sites.size > 0 ? this.#sites.get(wanted.siteName) : undefined;
  }

  /** The site where this call stands in line. */
  of({ site, wanted }: Waiter): Site {
    const known = site ?? this.get(wanted);
    if (known) return known;
    const made = new Site(this, wanted.siteName);
    this.#sites.set(made.name, made);
    return made;
  }

  /** The call stands in line behind those that wait for the same already, or tries. */
  enter(waiter: Waiter): void {
    const site = waiter.wait > 0 && !waiter.place ? this.get(waiter.wanted) : undefined;
    if (site?.first) site.join(waiter);
    else waiter.tryNow();
  }

  /** Milliseconds until the next try, for a holder whose lease ends in `ttl`; -1: it has no end. */
  untilNextTry(ttl: number): number {
    const { pollCap, random, exactTimers } = this.env.settings;
    if (ttl < 0) return pollCap;
    if (exactTimers) return Math.max(1, Math.min(pollCap, ttl));
    const jitter = random() * Math.min(ttl / 10, LONGEST_JITTER);
    return Math.min(pollCap, Math.max(SHORTEST_SLEEP, ttl + MARGIN + jitter));
  }

  /** The connection is back: releases that were announced meanwhile were not heard. */
  hintAll(): void {
    for (const site of [...this.#sites.values()]) site.hintAll();
  }

  drop(site: Site): void {
    this.#sites.delete(site.name);
  }

  /** The calls that wait now. */
  get waiting(): Waiter[] {
    return this.calls.all().filter(({ waitsSince }) => waitsSince !== undefined);
  }

  close(): void {
    for (const call of this.calls.all().reverse()) call.close();
    // First tries are known as commands only.
    for (const command of this.env.runner.commands()) if (command instanceof Waiter) command.close();
    this.kept.close();
  }
}
