/**
 * How long a lock goes from hand to hand inside one process: lock cohorting (Dice, Marathe and Shavit, "Lock Cohorting",
 * 2012). It stays long enough to be cheap, never so long that others starve.
 *
 * 1. While its turn lasts, a release grants the lock to the first waiter here.
 * 2. After the turn a release is an ordinary one, whose answer says how many subscribers heard of it. If others did, the
 *    first waiter here waits for a release of each. It waits for as long as the turn was at most, and never longer than a
 *    turn may be.
 */
import type { Env } from "../env.js";

/** Milliseconds that a turn may last. */
const LONGEST = 50;
/** Milliseconds that the first waiter makes way where nobody can tell who listens; once in `STAY` for those who only try. */
const UNHEARD = 4;
const STAY = 1_000;

export class Turn {
  readonly #env: Env;
  /** When the lock came to this process, or somebody here began to wait for it. */
  #since = 0;
  /** Our own subscriber hears our announcement, too: so many messages are no news. */
  #echoes = 0;
  /** So many processes more go first, each for as long as this one makes way. */
  #ahead = 0;
  #pause = 0;
  /** When this process last made way, or began to wait. */
  #left: number;

  constructor(env: Env) {
    this.#env = env;
    this.begin();
    this.#left = this.#since;
  }

  /** The lock comes from elsewhere, or somebody here begins to wait for it: a turn begins. */
  begin(): void {
    this.#since = this.#env.clock.mono();
    this.#ahead = 0;
  }

  /** Whether the next release may grant the lock to a waiter here. */
  get lasts(): boolean {
    return this.#length < LONGEST;
  }

  get #length(): number {
    return this.#env.clock.mono() - this.#since;
  }

  /** The release at the end of the turn is sent; `ears`: how many of its hearers are our own. */
  announces(ears: number): void {
    this.#echoes = ears;
  }

  /** The first waiter tries, so it needs no message that came before. */
  tries(): void {
    this.#echoes = 0;
  }

  /** Whether a message is taken for our own. A mistake costs what the first waiter makes way, at most. */
  isEcho(): boolean {
    if (this.#echoes === 0) return false;
    this.#echoes--;
    return true;
  }

  /** Another process has given it back. Milliseconds for which the next one goes first; 0 if it is our turn. */
  letsPass(): number {
    if (this.#ahead === 0) return 0;
    this.#ahead--;
    return this.#pause;
  }

  /** So many subscribers heard of the release (-1, the default: not known). Milliseconds for which the first waiter makes way. */
  makesWay(heard = -1, ears = 0): number {
    const turn = this.#length;
    this.begin();
    const { isCluster, publishCommand } = this.#env.runner;
    // Without sharded pub/sub a node counts its own subscribers only.
    if (heard < 0 || (isCluster && publishCommand === "PUBLISH")) return UNHEARD;
    const others = heard - ears;
    const now = this.#env.clock.mono();
    if (others <= 0 && now - this.#left < STAY) return 0;
    this.#left = now;
    if (others <= 0) return UNHEARD;
    this.#ahead = others - 1;
    this.#pause = Math.max(1, Math.min(turn, LONGEST));
    return this.#pause;
  }
}
