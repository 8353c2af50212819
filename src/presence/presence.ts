/**
 * Publishes what this client holds and waits for, in one key of its own. It does so as soon as another hold or wait is
 * older than a second, and once in each round while one is. People read that key. No code decides anything by it.
 */
import { hostname } from "node:os";
import { isLockError } from "../base/errors.js";
import { renewalInterval } from "../base/lease.js";
import { CLIENT_INDEX, clientKey } from "../base/names.js";
import { outside } from "../base/outside.js";
import type { Env } from "../env.js";
import { clientDescribe, clientEnlist, clientTell } from "../scripts/generated.js";
import { lookOut, type Presences } from "./lookout.js";
import { type ClientInfo, type ClientState, type Told, write } from "./told.js";

/** Milliseconds. Most holds and waits are shorter, and do not make the client write its key. */
const SHORT = 1_000;
/** Milliseconds until the client first looks for old holds and waits. Those that began a little later are old by then, too. */
const FIRST_LOOK = 1_250;
/** Milliseconds until it looks again, at most. */
const AGAIN = 1_000;

export class Presence {
  readonly client: ClientInfo;
  readonly #env: Env;
  /** All holds and waits of the client, of any age. */
  readonly #look: () => ClientState;
  readonly #since: number;
  /** Milliseconds from one write of the key to the next. */
  readonly #round: number;
  /** Ends the timer, if one runs. */
  #cancel: (() => void) | undefined;
  #isOff: boolean;
  /** When the key was last written, in monotonic milliseconds; undefined while there is no key in Redis. */
  #toldAt: number | undefined;
  /** The command that has no answer yet. The next one waits for it, so that an outage piles up no commands. */
  #work: Promise<void> | undefined;

  constructor(env: Env, look: () => ClientState) {
    const { label, presence, watchdogTimeout } = env.settings;
    const [host, { pid }] = [hostname(), process];
    this.client = { id: env.clientId, label: label || `${host}:${pid}`, host, pid };
    this.#env = env;
    this.#look = look;
    this.#since = env.clock.wall();
    this.#round = renewalInterval(watchdogTimeout);
    this.#isOff = !presence;
  }

  /** Reads what one client, or each client, tells of itself; what this one would tell comes from its own memory. */
  lookOut(clientId?: string): Promise<Presences> {
    return lookOut(this.#env.runner, { client: this.client, ...this.#look() }, clientId);
  }

  /** Something is held or awaited from now on. */
  begin(): void {
    if (!this.#cancel && !this.#isOff) this.#arm(FIRST_LOOK);
  }

  /** The client is closed: its key is deleted. */
  async close(): Promise<void> {
    this.#isOff = true;
    this.#cancel?.();
    await this.#work;
    if (this.#toldAt !== undefined) await this.#send(this.#takeBack());
  }

  #arm(ms: number): void {
    outside(() => {
      this.#cancel = this.#env.clock.after(ms, () => this.#tick());
    });
  }

  #tick(): void {
    this.#cancel = undefined;
    if (this.#isOff) return;
    const state = this.#look();
    if (!this.#work) this.#update(state);
    const isNeeded = state.holds.length + state.waits.length > 0 || this.#toldAt !== undefined;
    // Rounds are divided evenly, so that none is longer than it should be.
    const again = this.#round / Math.ceil(this.#round / AGAIN);
    // Rounded up: after a fraction of a millisecond the clock may not have moved.
    if (isNeeded) this.#arm(Math.ceil(again));
  }

  /** Writes or deletes the key, if it is time to. */
  #update({ holds, waits }: ClientState): void {
    const { clock } = this.#env;
    const now = clock.wall();
    const sinceTold = this.#toldAt === undefined ? Infinity : clock.mono() - this.#toldAt;
    const isDue = sinceTold >= this.#round;
    const isOld = ({ since }: Told) => now - since >= SHORT;
    const isNews = ({ since }: Told) => now - since <= sinceTold + SHORT;
    // A reader checks a hold against the lock's key. It cannot check a wait, and most waits end soon: these are left out.
    const told = { holds, waits: waits.filter(isOld) };
    const old = [...told.waits, ...holds.filter(isOld)];
    if (isDue ? old.length > 0 : old.some(isNews)) {
      this.#toldAt = clock.mono();
      void this.#send(this.#tell(told));
    } else if (isDue && this.#toldAt !== undefined) void this.#send(this.#takeBack());
  }

  /** If Redis does not answer, it is tried again later. Any other failure ends the writing, and is reported once. */
  #send(work: Promise<void>): Promise<void> {
    const failed = (cause: unknown) => {
      if (this.#isOff || isLockError(cause, "UNAVAILABLE") || isLockError(cause, "CLIENT_CLOSED")) return;
      this.#isOff = true;
      this.#env.events.emit("error", { cause });
    };
    this.#work = work.catch(failed).finally(() => {
      this.#work = undefined;
    });
    return this.#work;
  }

  async #tell(state: ClientState): Promise<void> {
    const { runner, clientId } = this.#env;
    const ttl = Math.ceil(2 * this.#round);
    const told = Object.entries(write({ client: this.client, ...state }, this.#since)).flat();
    const [key, index] = [clientKey(clientId), CLIENT_INDEX];
    if (runner.isCluster) {
      await Promise.all([
        runner.call("", () => clientDescribe.with([key], [ttl, ...told]), Number),
        runner.call("", () => clientEnlist.with([index], [clientId, ttl]), Number),
      ]);
    } else await runner.call("", () => clientTell.with([key, index], [clientId, ttl, ...told]), Number);
  }

  async #takeBack(): Promise<void> {
    const { runner, clientId } = this.#env;
    await Promise.all([
      runner.command("DEL", clientKey(clientId)),
      runner.command("ZREM", CLIENT_INDEX, clientId),
    ]);
    this.#toldAt = undefined;
  }
}
