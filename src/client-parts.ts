/** Makes the parts of a client, each once, and gives each part what it needs. */
import { Events } from "./base/events.js";
import { renewalInterval } from "./base/lease.js";
import { LiveSet } from "./base/live-set.js";
import type { CheckedOptions } from "./client-options.js";
import { describeSelf, lookOf } from "./client-telling.js";
import { Env } from "./env.js";
import { Inspector } from "./inspection/inspector.js";
import { whoHolds } from "./inspection/who-holds.js";
import { makeRenewers } from "./kinds/renewers.js";
import { LongHolds } from "./lock/long-holds.js";
import { renewal, renewNow } from "./lock/renewal.js";
import { outside } from "./owner/context.js";
import { lookOut } from "./presence/lookout.js";
import { Presence } from "./presence/presence.js";
import { Router } from "./pubsub/router.js";
import { CommandRunner } from "./redis/command-runner.js";
import { type Connection, hearErrors, isCluster } from "./redis/connection.js";
import { followCredentials } from "./redis/credentials.js";
import { KnownMasters } from "./redis/known-masters.js";
import { Replicas } from "./redis/replicas.js";
import { slotOf } from "./redis/slots.js";
import { stayConnected } from "./redis/stay-connected.js";
import { KeptPermits } from "./semaphores/kept-permits.js";
import { ServerClock } from "./semaphores/server-clock.js";
import { Sites } from "./waiting/sites.js";
import { Watchdog } from "./watchdog/watchdog.js";

export interface ClientParts {
  /** What all locks and semaphores share. */
  readonly env: Env;
  readonly permits: KeptPermits;
  readonly presence: Presence;
  readonly serverClock: ServerClock;
  readonly inspector: Inspector;
}

export function makeParts(connection: Connection, options: CheckedOptions): ClientParts {
  const { clock, commandTimeout, legacyServer, prefix, warnAfter, watchdogTimeout } = options;
  const shardedPubSub = legacyServer ? false : options.shardedPubSub;
  const runner = new CommandRunner({
    connection,
    clock,
    commandTimeout,
    shardedPubSub,
    legacyServer,
    outside,
  });
  const sharded = () => runner.publishCommand === "SPUBLISH";
  const groupOf = isCluster(connection) ? slotOf : () => 0;
  const client = describeSelf(options.label);
  const events = new Events(outside);
  const round = renewalInterval(watchdogTimeout);
  const presence = new Presence(
    { runner, clock, events, client, round, look: () => look(), outside },
    options.presence,
  );
  const { stir } = presence;
  const env = new Env({
    clientId: client.id,
    settings: options,
    clock,
    runner,
    masters: new KnownMasters(runner),
    router: new Router({ connection, clock, sharded, outside }),
    renewers: makeRenewers(runner, watchdogTimeout),
    events,
    stir,
    whoHolds: (locks) => who(locks),
    longHolds: warnAfter > 0 ? new LongHolds(events, clock, warnAfter, outside) : undefined,
    replicas: makeReplicas(connection, runner, options),
  });
  // The slack lets holds that were taken soon after each other share their renewals.
  const watchdog = { clock, slack: watchdogTimeout / 12, groupOf, outside };
  env.sites = new Sites(env, outside);
  env.live = new LiveSet(stir);
  env.watchdog = new Watchdog(watchdog, renewal);
  runner.onReady(() => {
    env.sites.hintAll();
    renewNow(env.live.all());
  });
  const permits = new KeptPermits(env, watchdog);
  const look = lookOf(env, permits);
  const inspector = new Inspector({
    runner,
    prefix,
    assertOpen: () => env.assertOpen(""),
    lookOut: (clientId) => lookOut(runner, presence.own, clientId),
  });
  const who = whoHolds({ inspector, client, clock, within: (work, ms) => runner.withTimeout("", work, ms) });
  return { env, permits, presence, serverClock: new ServerClock(clock, runner), inspector };
}

function makeReplicas(
  connection: Connection,
  runner: CommandRunner,
  options: CheckedOptions,
): Replicas | undefined {
  const { replicas: required, replicasTimeout: timeout, legacyServer } = options;
  if (required === 0) return undefined;
  const overrides = {
    // A WAIT may block for longer than the user gives a command or socket; its time is kept by the calls on it.
    commandTimeout: undefined,
    socketTimeout: undefined,
    // Without this, ioredis may never settle what was on its way when the connection broke.
    autoResendUnfulfilledCommands: true,
  };
  const own = isCluster(connection)
    ? connection.duplicate([], { redisOptions: { ...connection.options.redisOptions, ...overrides } })
    : connection.duplicate(overrides);
  followCredentials(own.options, connection.options);
  stayConnected(own);
  hearErrors(own, () => {
    // The calls on this connection report what is wrong.
  });
  return new Replicas({ runner, connection: own, required, timeout, legacyServer });
}
