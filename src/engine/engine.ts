/**
 * The only wait loop of the library, for every kind of lock and synchronizer.
 *
 * It tries; refused, it listens to the channel and tries again once the server has confirmed that, so that no release
 * falls between; then it sleeps until a message, the holder's TTL, or `pollCap`. It knows nothing of owners, holds or
 * scripts: a {@link Contender} does the trying, and cleans up after a try whose outcome nobody waits for any more.
 */
import { ClientClosedError, isLockError } from "../base/errors.js";
import { type Item, List } from "../base/list.js";
import type { Link } from "../redis/link.js";
import type { Attempt, Contender } from "./contender.js";
import type { Line } from "./line.js";
import { Lines, type LinesOptions } from "./lines.js";
import { TIME_IS_UP, type Wait } from "./wait.js";
import { Waiter } from "./waiter.js";

export interface EngineOptions extends LinesOptions {
  readonly link: Link;
  readonly random: () => number;
}

/** Added to a TTL before the next try: PTTL is truncated, and a timer may fire a millisecond early. */
const MARGIN = 2;
const SHORTEST_SLEEP = 5;
const LONGEST_JITTER = 50;

/** A call's place in the list of all, beside the one that its waiter may have in a line. */
class Call implements Item {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  readonly lockName: string;
  readonly wait: Wait;

  constructor(lockName: string, wait: Wait) {
    this.lockName = lockName;
    this.wait = wait;
  }
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #lines: Lines;
  /** Calls under way. */
  readonly #calls = new List<Call>();
  readonly #stopListening: () => void;
  #onIdle: (() => void) | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#lines = new Lines(options);
    this.#stopListening = options.link.onReady(() => {
      for (const line of this.#lines) line.hint();
    });
  }

  /**
   * Waits until the contender is granted what it wants; undefined when `wait` milliseconds are over first. With
   * `wait` 0 it tries once, past those that wait. `seasoned`: the call that this is a part of has waited before, so it
   * survives an outage.
   */
  acquire<G>(
    contender: Contender<G>,
    wait: number,
    signal: AbortSignal | undefined,
    seasoned = false,
  ): Promise<G | undefined> {
    const { clock, link } = this.#options;
    const waiter = new Waiter(contender, { clock, wait, signal });
    waiter.seasoned = seasoned;
    return this.#see(waiter, contender, wait, link.commandTimeout);
  }

  /** Tries once, past those that wait, for at most `within` milliseconds; undefined if it is refused. */
  once<G>(contender: Contender<G>, within: number, signal: AbortSignal | undefined): Promise<G | undefined> {
    const waiter = new Waiter(contender, { clock: this.#options.clock, wait: 0, signal });
    return this.#see(waiter, contender, 0, within);
  }

  /**
   * Something that a line waits for is given back in this process. `pass` is told of the first one, and whether others are
   * to be asked before it; if it returns true, that one's next try awaits the command by which it may be granted.
   */
  handOver(line: string, pass: (contender: Contender<unknown>, offered: boolean) => boolean): void {
    this.#lines.get(line)?.handOver(pass);
  }

  /** It was given back, and nobody here has it yet; others were to have it first if `yields`. */
  released(line: string, yields: boolean): void {
    this.#lines.get(line)?.released(yields);
  }

  /** The first in a line is to try: it may have been granted what it wants, and nobody could tell it. */
  wake(line: string): void {
    this.#lines.get(line)?.hint();
  }

  /** Ends the wait of a call that uses other engines too when this one is closed, until the returned function is called. */
  join(lockName: string, wait: Wait): () => void {
    const call = new Call(lockName, wait);
    this.#calls.add(call);
    return () => this.#remove(call);
  }

  /** Rejects everybody who waits; resolves when all have gone. */
  close(): Promise<void> {
    this.#stopListening();
    const idle = this.#calls.first
      ? new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        })
      : Promise.resolve();
    for (const { lockName, wait } of this.#calls.all().reverse()) wait.end(new ClientClosedError(lockName));
    return idle;
  }

  async #see<G>(
    waiter: Waiter,
    contender: Contender<G>,
    wait: number,
    within: number,
  ): Promise<G | undefined> {
    const call = new Call(contender.lockName, waiter);
    this.#calls.add(call);
    let taken = false;
    try {
      contender.enter(waiter);
      const granted =
        wait === 0
          ? await this.#once(contender, waiter, within)
          : await this.#persist(contender, waiter, wait);
      taken = granted !== undefined;
      return granted;
    } catch (reason) {
      if (reason !== TIME_IS_UP) throw reason;
      if (!waiter.seasoned || contender.away) {
        throw this.#options.link.unavailable(contender.lockName);
      }
      return undefined;
    } finally {
      waiter.dispose();
      contender.leave(taken);
      this.#remove(call);
    }
  }

  #remove(call: Call): void {
    this.#calls.remove(call);
    if (!this.#calls.first) this.#onIdle?.();
  }

  /** One try, past the line; not at all when it is another's turn. */
  async #once<G>(contender: Contender<G>, waiter: Waiter, within: number): Promise<G | undefined> {
    while (contender.admitted()) {
      const attempt = await waiter.during(contender.attempt(within, undefined));
      if (attempt.granted) return attempt.value;
      if (attempt.ttl !== 0) return undefined;
    }
    return undefined;
  }

  async #persist<G>(contender: Contender<G>, waiter: Waiter, wait: number): Promise<G> {
    const line = this.#lines.join(contender);
    let undecided = false;
    try {
      for (;;) {
        const fellows = this.#mayTry(contender, waiter, line);
        if (typeof fellows === "number") {
          this.#announce(contender, waiter);
          waiter.seasoned = true;
          await waiter.park(fellows);
          continue;
        }
        undecided = true;
        const attempt = await waiter.during(this.#try(contender, waiter, wait, fellows));
        undecided = false;
        if (attempt.granted) {
          line.granted(waiter, Math.min(attempt.lease, this.#options.pollCap), attempt.beside);
          return attempt.value;
        }
        if (attempt.ttl === 0) {
          line.again(waiter);
          continue;
        }
        waiter.seasoned = true;
        this.#announce(contender, waiter);
        const sleep = this.#sleep(attempt.ttl);
        line.refused(waiter, sleep, attempt.overlooked ?? [], attempt.others);
        // Out of line, nothing else keeps it from trying again at once.
        if (contender.reenters()) await waiter.park(sleep);
      }
    } finally {
      line.leave(waiter, undecided);
      this.#lines.leave(line);
    }
  }

  /** The places to refresh by the try that is due now, or the milliseconds for which none is. */
  #mayTry(contender: Contender<unknown>, waiter: Waiter, line: Line): readonly string[] | number {
    if (!contender.admitted()) {
      // It must not hold up those behind it.
      line.leave(waiter, false);
      contender.withdraw();
      return Number.POSITIVE_INFINITY;
    }
    if (contender.reenters()) return [];
    line.enter(waiter);
    if (!line.isHead(waiter)) waiter.seasoned = true;
    const pause = line.pause(waiter);
    return pause > 0 ? pause : line.trying(waiter);
  }

  /** One try; a call that has waited before takes silence for a refusal, and goes on when Redis is back. */
  #try<G>(
    contender: Contender<G>,
    waiter: Waiter,
    wait: number,
    fellows: readonly string[],
  ): Promise<Attempt<G>> {
    const { commandTimeout } = this.#options.link;
    if (!waiter.seasoned) return contender.attempt(Math.min(commandTimeout, wait), fellows);
    return contender.attempt(commandTimeout, fellows).catch((error: unknown) => {
      if (!isLockError(error, "UNAVAILABLE") && !isLockError(error, "QUORUM")) throw error;
      return { granted: false, ttl: -1 };
    });
  }

  #announce(contender: Contender<unknown>, waiter: Waiter): void {
    if (waiter.announced) return;
    waiter.announced = true;
    contender.waiting();
  }

  #sleep(ttl: number): number {
    const { pollCap, random } = this.#options;
    if (ttl < 0) return pollCap;
    const jitter = random() * Math.min(ttl / 10, LONGEST_JITTER);
    return Math.min(pollCap, Math.max(SHORTEST_SLEEP, ttl + MARGIN + jitter));
  }
}
