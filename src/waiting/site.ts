/**
 * All that this process knows of one name while somebody waits for it. That is who waits, in order, whether the channel
 * is subscribed, and when the first tries again. Only the first talks to Redis, so ten thousand waiters cost one try
 * for each release. Where the server keeps a queue, each waiter tries once to get a ticket there.
 *
 * A waiter is refused, subscribes, and tries again once the server has confirmed that, so that no release is missed. Then
 * it sleeps until a message, the end of the holder's lease, or `pollCap`. A message is a hint to try, trusted by nobody.
 */
import { UnsupportedServerError } from "../base/errors.js";
import { type Item, List } from "../base/list.js";
import { LiveSet } from "../base/live-set.js";
import { outside } from "../base/outside.js";
import { type Due, TimerHeap } from "../base/timer-heap.js";
import type { Env } from "../env.js";
import { scrubbed } from "../redis/failures.js";
import { Turn } from "./handover.js";
import { Waiter } from "./waiter.js";

/** Added to a TTL before the next try: PTTL is truncated, and a timer may fire a millisecond early. */
const MARGIN = 2;
const SHORTEST_SLEEP = 5;
const LONGEST_JITTER = 50;
/** Milliseconds for which an empty site is kept: calls that share a lock in a loop come back at once. */
const KEPT = 20;

/** A waiter's place in line. */
export class Place implements Item {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly waiter: Waiter;
  /** A message came while its try was on its way: the answer may be older than the message. */
  hinted = false;
  /** Ends its own subscription. */
  declare unsubscribe?: (() => void) | undefined;

  constructor(waiter: Waiter) {
    this.waiter = waiter;
  }
}

export class Site implements Due {
  // Of those that are kept though nobody waits.
  dueAt = 0;
  index = -1;
  readonly name: string;
  readonly turn: Turn;
  readonly #sites: Sites;
  readonly #line = new List<Place>();
  #unsubscribe: (() => void) | undefined;
  /** The server has confirmed the subscription. */
  #isListening = false;
  #cancelSleep: (() => void) | undefined;
  /** When the last message came, in monotonic milliseconds. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(sites: Sites, name: string) {
    this.#sites = sites;
    this.name = name;
    this.turn = new Turn(sites.env);
  }

  get first(): Waiter | undefined {
    return this.#line.first?.waiter;
  }

  /** The waiter behind the first. */
  get second(): Waiter | undefined {
    return this.#line.first?.next?.waiter;
  }

  /** How many subscribers of the channel are this client's own. */
  get ears(): number {
    return Number(this.#isListening);
  }

  waiters(): Waiter[] {
    return this.#line.all().map(({ waiter }) => waiter);
  }

  /** The first in line keeps the tickets of all behind it alive: their wire ids. */
  behind(waiter: Waiter): readonly string[] {
    if (waiter !== this.first) return [];
    return this.waiters().flatMap((other) => (other === waiter ? [] : (other.wireId ?? [])));
  }

  /** The waiter stands in line from now on, and tries only once it is the first. */
  join(waiter: Waiter): void {
    this.#add(waiter);
    waiter.announce();
    if (waiter.state === "over") return;
    if (waiter.wanted.traits.serverQueued || this.first === waiter) waiter.tryNow();
    else waiter.state = "queued";
  }

  /** A try begins: it sees all that was announced before. */
  tries({ place }: Waiter): void {
    if (!place) return;
    place.hinted = false;
    if (this.#line.first !== place) return;
    this.#stopSleep();
    this.turn.tries();
  }

  /** The waiter was refused; as the first it tries again in `ms`. */
  refused(waiter: Waiter, ms: number): void {
    // A message may have come while the call was not in line yet.
    const isNews = !waiter.place && this.#heardAt >= waiter.sentAt.mono;
    this.#add(waiter);
    const place = waiter.place as Place;
    this.#listen(waiter, place);
    const isFirst = this.first === waiter;
    waiter.state = isFirst ? "asleep" : "queued";
    if (place.hinted || (isFirst && isNews)) waiter.tryNow();
    else if (isFirst) this.sleep(ms);
  }

  /** The first in line tries again in `ms`, unless something happens before. */
  sleep(ms: number): void {
    this.#stopSleep();
    const { clock } = this.#sites.env;
    outside(() => {
      this.#cancelSleep = clock.after(ms, () => {
        this.#cancelSleep = undefined;
        this.hint();
      });
    });
  }

  /** Something may have changed: the first tries. */
  hint(): void {
    this.#wake(this.#line.first);
  }

  /** All try: what was granted to one of them can be granted to others. */
  hintAll(): void {
    for (const place of this.#line.all()) this.#wake(place);
  }

  /** A number of permits is left over for those in line. */
  hintFor(permits: number): void {
    let left = permits;
    for (const place of this.#line.all()) {
      left -= place.waiter.permits;
      if (left < 0) return;
      this.#wake(place);
    }
  }

  /** These wire ids have to try for themselves. */
  retry(wireIds: readonly string[]): void {
    for (const place of this.#line.all()) {
      const { wireId } = place.waiter;
      if (wireId !== undefined && wireIds.includes(wireId)) this.#wake(place);
    }
  }

  /** Others are about to ask for what the first waits for: the server has to know that it waits. */
  remind(): void {
    if (this.first && this.#isUntold(this.first)) this.hint();
  }

  /** The lock was given back here, and no message will tell of it. */
  released(): void {
    if (!this.#isListening) this.hint();
  }

  /** The waiter is no longer in line. */
  leave(waiter: Waiter, taken: boolean): void {
    const { place } = waiter;
    if (!place?.list) return;
    const wasFirst = this.#line.first === place;
    // It may have used up a message, or the answer to its try may have been the news for all.
    const owes = place.hinted || !this.#cancelSleep;
    this.#line.remove(place);
    place.unsubscribe?.();
    waiter.place = undefined;
    waiter.site = undefined;
    const { first } = this;
    if (!first) {
      this.#stopSleep();
      return this.#sites.keep(this);
    }
    if (!wasFirst) return;
    if (first.state === "queued") first.state = "asleep";
    if (taken && first.wanted.traits.shared) this.hintAll();
    else if (!taken && (this.#isUntold(first) || owes || first.permits < waiter.permits)) this.hint();
    // The release of what was taken tells the server of the next writer.
    else if (taken) this.sleep(first.longestSleep);
  }

  /** Nobody has waited for a while. */
  close(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#isListening = false;
  }

  /** Whether the server has to be told of the first waiter: readers let it go first. */
  #isUntold({ wanted: { traits }, toldAt }: Waiter): boolean {
    const { clock, settings } = this.#sites.env;
    return traits.advertised === true && clock.mono() - toldAt > settings.pollCap;
  }

  #add(waiter: Waiter): void {
    if (waiter.place) return;
    waiter.place = new Place(waiter);
    waiter.site = this;
    this.#sites.kept.remove(this);
    this.#line.add(waiter.place);
  }

  #wake(place: Place | undefined): void {
    if (!place) return;
    const { waiter } = place;
    if (waiter.state === "trying") place.hinted = true;
    else waiter.tryNow();
  }

  #stopSleep(): void {
    this.#cancelSleep?.();
    this.#cancelSleep = undefined;
  }

  #listen(waiter: Waiter, place: Place): void {
    const refused = (error: unknown, channel: string) => this.#forbidden(error, channel);
    if (waiter.wanted.traits.serverQueued) {
      place.unsubscribe ??= waiter.listen({ hint: () => this.#wake(place), refused });
    } else {
      this.#unsubscribe ??= waiter.listen({ hint: () => this.#heard(), refused });
    }
  }

  /** What one waiter may not listen to, the others may not either; who comes later asks again. */
  #forbidden(error: unknown, channel: string): void {
    this.close();
    const cause = scrubbed(error);
    const what = `the server forbids the channel "${channel}": ${cause.message}`;
    for (const each of this.waiters()) each.end(new UnsupportedServerError(each.lockName, what, cause));
  }

  #heard(): void {
    const isConfirmation = !this.#isListening;
    this.#isListening = true;
    this.#heardAt = this.#sites.env.clock.mono();
    if (isConfirmation) return this.hint();
    if (this.turn.isEcho()) return;
    const ms = this.first?.state === "asleep" ? this.turn.letsPass() : 0;
    if (ms > 0) this.sleep(ms);
    else this.hint();
  }
}

/** The sites of a client, by name. */
export class Sites {
  readonly env: Env;
  /** Those where nobody waits. */
  readonly kept: TimerHeap<Site>;
  /** Calls that may stand without a command of their own: they wait, or their members have the commands. */
  readonly calls: LiveSet<Waiter>;
  readonly #sites = new Map<string, Site>();

  constructor(env: Env) {
    this.env = env;
    this.calls = new LiveSet(env);
    this.kept = new TimerHeap(env.clock, (site) => this.#drop(site));
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

  /** Nobody waits there any more. */
  keep(site: Site): void {
    this.kept.put(site, this.env.clock.mono() + KEPT);
  }

  /** The calls that wait now. */
  get waiting(): Waiter[] {
    return this.calls.all().filter(({ waitsSince }) => waitsSince !== undefined);
  }

  close(): void {
    for (const call of this.calls.all().reverse()) call.close();
    // First tries are known as commands only.
    for (const command of this.env.runner.open.all()) if (command instanceof Waiter) command.close();
    this.kept.close();
  }

  #drop(site: Site): void {
    this.kept.remove(site);
    this.#sites.delete(site.name);
    site.close();
  }
}
