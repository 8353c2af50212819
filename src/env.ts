/** What all locks of one client share. The client makes it, passes it down and closes it: it is no global. */
import type { Clock } from "./base/clock.js";
import { ClientClosedError, type LossReason } from "./base/errors.js";
import { Events } from "./base/events.js";
import { clientId } from "./base/ids.js";
import { LiveSet } from "./base/live-set.js";
import { clearTimeout, LONGEST_TIMER, setImmediate, setTimeout } from "./base/platform.js";
import { quietly } from "./base/work.js";
import type { CheckedOptions } from "./client-options.js";
import { stateOf } from "./client-telling.js";
import { Inspector } from "./inspection/inspector.js";
import { Places } from "./lock/dropped.js";
import type { Grant } from "./lock/grant.js";
import { Presence } from "./presence/presence.js";
import { Router } from "./pubsub/router.js";
import { CommandRunner } from "./redis/command-runner.js";
import type { Connection } from "./redis/connection.js";
import { ownConnection } from "./redis/own-connection.js";
import { Replicas } from "./redis/replicas.js";
import { LivePermits } from "./semaphores/live-permits.js";
import { ServerClock } from "./semaphores/server-clock.js";
import { Sites } from "./waiting/site.js";
import { Watchdog } from "./watchdog/watchdog.js";

export class Env {
  readonly clientId: string = clientId();
  readonly settings: CheckedOptions;
  readonly clock: Clock;
  readonly runner: CommandRunner;
  readonly router: Router;
  readonly serverClock: ServerClock;
  readonly events: Events = new Events();
  /** Sends grants that replicas must acknowledge; undefined if the client does not ask for that. */
  readonly replicas: Replicas | undefined;
  readonly presence: Presence;
  readonly inspector: Inspector;
  /** Calls that name no owner act for that of the scope or run around them. */
  readonly followsContext: boolean;
  /** Notes where calls were made, for warnings. */
  readonly places: Places = new Places();
  readonly sites: Sites;
  /** Grants that are held; those that let nobody else in by lock key. */
  readonly live: LiveSet<Grant> = new LiveSet(this);
  readonly permits: LivePermits;
  readonly watchdog: Watchdog;
  /** New calls are refused. Holds may still be given back. */
  closed = false;
  #minted = 0;

  /** `given`: the connection of the user, from which the client makes its own. */
  constructor(given: Connection, settings: CheckedOptions) {
    const runner = new CommandRunner(given, settings);
    this.settings = settings;
    this.clock = settings.clock;
    this.runner = runner;
    this.router = new Router(runner);
    this.serverClock = new ServerClock(runner);
    this.replicas =
      settings.replicas > 0 ? new Replicas(runner, ownConnection(given, runner.alive), settings) : undefined;
    this.followsContext = settings.reentrancy === "context";
    this.presence = new Presence(this, () => stateOf(this));
    this.inspector = new Inspector(this);
    this.sites = new Sites(this);
    this.permits = new LivePermits(this);
    this.watchdog = new Watchdog(runner, settings.watchdogTimeout);
    runner.connection.on("ready", () => {
      this.sites.hintAll();
      this.watchdog.renewNow(this.live.all());
    });
  }

  /** A number that this client has not used before. */
  mint(): number {
    return ++this.#minted;
  }

  /** Fresh for each outermost acquisition, so that a late command can never touch a later hold. */
  wireId(number: number = this.mint()): string {
    return `${this.clientId}:${number}`;
  }

  assertOpen(lockName: string): void {
    if (this.closed) throw new ClientClosedError(lockName);
  }

  /** Ends all holds and permits of the client now, as lost, and gives them back. */
  loseAll(reason: LossReason): void {
    for (const grant of this.live.all()) grant.lose(reason);
    for (const permit of this.permits.live.all()) permit.lose(reason);
  }

  /**
   * Rejects waiters, and gives holds and permits `grace` milliseconds to end by themselves. Then ends the rest, and waits
   * for the answers to the commands under way, as long as one command may take.
   */
  async close(grace: number): Promise<void> {
    const settling = this.settings.commandTimeout;
    this.closed = true;
    this.sites.close();
    if (grace > 0) await this.#atMost(grace, Promise.all([this.live.idle(), this.permits.live.idle()]));
    this.loseAll("closed");
    void quietly(this.presence.close());
    if (grace > 0) await this.#atMost(settling, this.runner.idle());
    else await this.#idleUnlessAway(settling);
    this.watchdog.close();
    this.runner.close();
    this.router.close();
    // The commands that the close itself caused are sent before.
    await new Promise((resolve) => setImmediate(resolve));
    this.runner.alive.close();
  }

  /** Waits until the commands under way have been answered, but not for a Redis that is away. */
  async #idleUnlessAway(ms: number): Promise<void> {
    const { runner } = this;
    const step = ms / 10;
    for (let waited = 0; waited < ms && runner.servers.connected; waited += step) {
      await this.#atMost(step, runner.idle());
      // After a stall of this process Redis only seems to be away, so answers that have arrived are read first.
      await new Promise((resolve) => setImmediate(resolve));
      if (!runner.open.first || runner.servers.away) return;
    }
  }

  /** Resolves when the work is done, or after `ms`. */
  #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      // A real timer next to that of the clock. It fires even if nothing else keeps the process alive, and if the clock
      // of a test stands still.
      const timer = setTimeout(done, Math.min(ms, LONGEST_TIMER));
      const cancel = this.clock.after(ms, done);
      void work.then(done);
      function done() {
        clearTimeout(timer);
        cancel();
        resolve();
      }
    });
  }
}
