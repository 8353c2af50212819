/**
 * Publishes what this client holds and waits for, in one key of its own. It does so as soon as another hold or wait is
 * older than a second, and once in each round while one is. People read that key. No code decides anything by it.
 */
import { isLockError } from "../base/errors.js";
import type { Events } from "../base/events.js";
import { CLIENT_INDEX, clientKey } from "../base/names.js";
import { outside } from "../base/outside.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { clientDescribe, clientEnlist, clientTell } from "../scripts/generated.js";
import { lookOut, type Presences } from "./lookout.js";
import { type ClientInfo, type ClientTold, type Told, write } from "./told.js";

/** Milliseconds. Most holds and waits are shorter, and do not make the client write its key. */
const SHORT = 1_000;
/** Milliseconds until the client looks for old holds and waits. Those that began a little later are written, too. */
const LOOK = 1_250;
/** Milliseconds until it looks again for those that are still young then; no telling is sooner after another one. */
const AGAIN = 1_000;

export interface PresenceOptions {
  readonly runner: CommandRunner;
  readonly events: Events;
  readonly client: ClientInfo;
  /** Milliseconds from one write of the key to the next. */
  readonly round: number;
  /** All holds and waits of the client, of any age. */
  readonly look: () => { readonly holds: readonly Told[]; readonly waits: readonly Told[] };
}

export class Presence {
  readonly #options: PresenceOptions;
  readonly #since: number;
  /** Ends the timer, if one runs. */
  #cancel: (() => void) | undefined;
  /** The timer is soon enough for what begins now. */
  #isSoon = false;
  #isOff: boolean;
  /** When the key was last written, in monotonic milliseconds; undefined while there is no key in Redis. */
  #toldAt: number | undefined;
  /** The command that has no answer yet. The next one waits for it, so that an outage piles up no commands. */
  #work: Promise<void> | undefined;

  constructor(options: PresenceOptions, isOn: boolean) {
    this.#options = options;
    this.#since = options.runner.clock.wall();
    this.#isOff = !isOn;
  }

  get client(): ClientInfo {
    return this.#options.client;
  }

  /** Reads what one client, or each client, tells of itself; what this one would tell comes from its own memory. */
  lookOut(clientId?: string): Promise<Presences> {
    const { runner, client, look } = this.#options;
    return lookOut(runner, { client, ...look() }, clientId);
  }

  /** Something is held or awaited from now on. */
  readonly stir = (): void => {
    if (!this.#isSoon && !this.#isOff) this.#arm(LOOK);
  };

  /** The client is closed: its key is deleted. */
  async close(): Promise<void> {
    this.#isOff = true;
    this.#cancel?.();
    await this.#work;
    if (this.#toldAt !== undefined) await this.#takeBack();
  }

  #arm(ms: number): void {
    this.#cancel?.();
    this.#isSoon = ms <= LOOK;
    const { runner } = this.#options;
    outside(() => {
      this.#cancel = runner.clock.after(ms, () => this.#tick());
    });
  }

  #tick(): void {
    this.#cancel = undefined;
    this.#isSoon = false;
    if (this.#isOff) return;
    const { round, look } = this.#options;
    const { clock } = this.#options.runner;
    const again = Math.min(round, AGAIN);
    if (this.#work) return this.#arm(again);
    const { holds, waits } = look();
    const now = clock.wall();
    const isOld = ({ since }: Told) => now - since >= SHORT;
    // A reader checks a hold against the lock's key. It cannot check a wait, and most waits end soon: these are left out.
    const told = { holds, waits: waits.filter(isOld) };
    const old = [...told.waits, ...holds.filter(isOld)];
    const sinceTold = this.#toldAt === undefined ? Infinity : clock.mono() - this.#toldAt;
    const isNews = ({ since }: Told) => now - since <= sinceTold + SHORT;
    let left = round - sinceTold;
    if (left <= 0 ? old.length > 0 : old.some(isNews)) {
      this.#begin(this.#tell(told));
      this.#toldAt = clock.mono();
      left = round;
    } else if (left <= 0 && this.#toldAt !== undefined) this.#begin(this.#takeBack());
    const hasYoung = holds.length + waits.length > old.length;
    // Rounded up: after a fraction of a millisecond the clock may not have moved.
    if (left > 0) this.#arm(Math.ceil(hasYoung ? Math.min(left, again) : left));
    else if (hasYoung) this.#arm(again);
  }

  #begin(work: Promise<void>): void {
    this.#work = work.finally(() => {
      this.#work = undefined;
    });
  }

  async #tell(state: Omit<ClientTold, "client">): Promise<void> {
    const { runner, client, round } = this.#options;
    const { id } = client;
    const ttl = Math.ceil(2 * round);
    const fields = write({ client, ...state }, this.#since);
    const told = Object.entries(fields).flat();
    try {
      const [key, index] = [clientKey(id), CLIENT_INDEX];
      if (runner.isCluster) {
        await Promise.all([
          runner.call("", () => clientDescribe.with([key], [ttl, ...told]), Number),
          runner.call("", () => clientEnlist.with([index], [id, ttl]), Number),
        ]);
      } else await runner.call("", () => clientTell.with([key, index], [id, ttl, ...told]), Number);
    } catch (cause) {
      this.#failed(cause);
    }
  }

  async #takeBack(): Promise<void> {
    const { runner, client } = this.#options;
    try {
      const { id } = client;
      await Promise.all([runner.command("DEL", clientKey(id)), runner.command("ZREM", CLIENT_INDEX, id)]);
      this.#toldAt = undefined;
    } catch (cause) {
      this.#failed(cause);
      if (!this.#isOff && !this.#cancel) this.#arm(LOOK);
    }
  }

  /** If Redis does not answer, it is tried again later. Any other failure ends the writing, and is reported once. */
  #failed(cause: unknown): void {
    if (this.#isOff || isLockError(cause, "UNAVAILABLE") || isLockError(cause, "CLIENT_CLOSED")) return;
    this.#isOff = true;
    this.#options.events.emit("error", { cause });
  }
}
