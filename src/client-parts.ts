/** Makes the parts of a client, each once, and gives each part what it needs. */
import { Events } from "./base/events.js";
import { renewalInterval } from "./base/lease.js";
import type { CheckedOptions } from "./client-options.js";
import { describeSelf, lookOf } from "./client-telling.js";
import { Env } from "./env.js";
import { Inspector } from "./inspection/inspector.js";
import { Presence } from "./presence/presence.js";
import { Router } from "./pubsub/router.js";
import { CommandRunner } from "./redis/command-runner.js";
import type { Connection } from "./redis/connection.js";
import { KeepAlive } from "./redis/keep-alive.js";
import { ownConnection } from "./redis/own-connection.js";
import { Replicas } from "./redis/replicas.js";
import { LivePermits } from "./semaphores/live-permits.js";
import { ServerClock } from "./semaphores/server-clock.js";
import { Sites } from "./waiting/sites.js";
import { Watchdog } from "./watchdog/watchdog.js";

export interface ClientParts {
  /** What all locks and semaphores share. */
  readonly env: Env;
  readonly permits: LivePermits;
  readonly presence: Presence;
  readonly serverClock: ServerClock;
  readonly inspector: Inspector;
}

/** `given`: the connection of the user, from which the client makes its own. */
export function makeParts(given: Connection, options: CheckedOptions): ClientParts {
  const { clock, prefix, watchdogTimeout } = options;
  const alive = new KeepAlive();
  const connection = ownConnection(given, alive);
  const runner = new CommandRunner(connection, alive, options);
  const client = describeSelf(options.label);
  const events = new Events();
  const round = renewalInterval(watchdogTimeout);
  const presence = new Presence({ runner, events, client, round, look: () => look() }, options.presence);
  const { stir } = presence;
  const inspector = new Inspector(runner, presence, prefix, () => env.assertOpen(""));
  const env = new Env({
    clientId: client.id,
    settings: options,
    clock,
    runner,
    router: new Router(runner),
    events,
    stir,
    whoHolds: inspector.whoHolds,
    replicas: options.replicas > 0 ? new Replicas(runner, ownConnection(given, alive), options) : undefined,
  });
  env.sites = new Sites(env);
  env.live = env.liveSet();
  env.watchdog = new Watchdog(runner, watchdogTimeout);
  connection.on("ready", () => {
    env.sites.hintAll();
    env.watchdog.renewNow(env.live.all());
  });
  const permits = new LivePermits(env);
  const look = lookOf(env, permits);
  return { env, permits, presence, serverClock: new ServerClock(runner), inspector };
}
