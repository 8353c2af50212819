/** What a client is made of: every part is made here, once, and given what it needs. */
import { Events } from "./base/events.js";
import { clientId } from "./base/ids.js";
import type { CheckedOptions } from "./client-options.js";
import { Engine } from "./engine/engine.js";
import { Inspector } from "./inspection/inspector.js";
import { Readers } from "./kinds/readers.js";
import { makeRenewers } from "./kinds/renewers.js";
import { Env } from "./locks/env.js";
import { makeLockTable } from "./locks/lock-table.js";
import type { LockTable } from "./locks/owner-lock.js";
import { Replicas } from "./locks/replicas.js";
import { outside } from "./owners/context.js";
import { Router } from "./pubsub/router.js";
import { CommandRunner } from "./redis/command-runner.js";
import { type Connection, hearErrors, isCluster } from "./redis/connection.js";
import { KnownMasters } from "./redis/known-masters.js";
import { slotOf } from "./redis/slots.js";
import { KeptPermits } from "./synchronizers/kept-permits.js";
import { ServerClock } from "./synchronizers/server-clock.js";

export interface ClientParts {
  /** What all locks and synchronizers share. */
  readonly env: Env;
  readonly table: LockTable;
  readonly readers: Readers;
  readonly permits: KeptPermits;
  readonly serverClock: ServerClock;
  readonly inspector: Inspector;
}

export function makeParts(connection: Connection, options: CheckedOptions): ClientParts {
  const { clock, commandTimeout, legacyServer, pollCap, prefix, random, watchdogTimeout } = options;
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
  const env = new Env({
    clientId: clientId(),
    settings: options,
    clock,
    runner,
    masters: new KnownMasters(runner),
    router: new Router({ connection, clock, sharded, outside }),
    engine: new Engine({ runner, clock, pollCap, random, outside }),
    renewers: makeRenewers(runner, watchdogTimeout),
    events: new Events(outside),
    replicas: makeReplicas(connection, runner, options),
  });
  // Holds that were taken one after the other soon share their renewals.
  const watchdog = { clock, slack: watchdogTimeout / 12, groupOf, outside };
  return {
    env,
    table: makeLockTable(env, watchdog),
    readers: new Readers(runner),
    permits: new KeptPermits(env, watchdog),
    serverClock: new ServerClock(clock, runner),
    inspector: new Inspector({ runner, prefix, assertOpen: () => env.assertOpen("") }),
  };
}

function makeReplicas(
  connection: Connection,
  runner: CommandRunner,
  options: CheckedOptions,
): Replicas | undefined {
  const { replicas: required, replicasTimeout: timeout, legacyServer } = options;
  if (required === 0) return undefined;
  const own = connection.duplicate();
  hearErrors(own, () => {
    // The calls on it report what is wrong.
  });
  return new Replicas({ runner, connection: own, required, timeout, legacyServer });
}
