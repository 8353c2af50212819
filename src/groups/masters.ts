/** Whether the masters of a RedLock are there, and are as many as they seem: on one server two votes would be one. */
import type { Clock } from "../base/clock.js";
import { isLockError, UnsupportedServerError } from "../base/errors.js";
import type { Env } from "../locks/env.js";
import { quietly } from "../locks/work.js";
import { addressOf, type Connection, isCluster, masterAddress } from "../redis/connection.js";
import { onEvents } from "../redis/connection-events.js";
import type { Link } from "../redis/link.js";
import type { Member, Roster } from "./roster.js";
import { fulfilled, rejected, settled } from "./settled.js";

/** Links whose first connection a call has waited for: no further one waits for a minority of those. */
const AWAITED = new WeakSet<Link>();

/** Connections on their first way to a server. */
const FRESH: readonly string[] = ["wait", "connecting", "connect"];

export class Masters {
  readonly #roster: Roster;
  /** By member. */
  readonly #runIds: (string | undefined)[] = [];
  readonly #asked = new Set<Member>();

  constructor(roster: Roster) {
    this.#roster = roster;
  }

  /**
   * Resolves when all are connected, or cannot be at once; undefined if there is nothing to wait for. A first connection
   * may take longer than an answer may later, so the first round waits for it: for a majority as long as for a command,
   * for the others `grace` milliseconds more.
   */
  connecting(grace: number): Promise<void> | undefined {
    const { members, quorum } = this.#roster;
    const fresh = members.filter(({ env }) => isFresh(env));
    const late = fresh.filter(({ env }) => !AWAITED.has(env.link));
    if (late.length === 0 && members.length - fresh.length >= quorum) return undefined;
    return this.#arrive(fresh, late, grace);
  }

  /** Asks the servers who they are, as far as that is not known. */
  introduce(): void {
    for (const [i, member] of this.#roster.members.entries()) {
      if (this.#asked.has(member) || member.env.link.servers.isAway(member.backend.key)) continue;
      this.#asked.add(member);
      const told = runIdOf(member).then((runId) => {
        this.#runIds[i] = runId;
      });
      told.catch(() => this.#asked.delete(member));
    }
  }

  /** @throws UNSUPPORTED if two of them are known to be one server */
  assertDistinct(): void {
    const known = this.#runIds.filter((runId) => runId !== undefined);
    if (new Set(known).size === known.length) return;
    throw new UnsupportedServerError(
      this.#roster.name,
      "two members are on one server; each member of a RedLock needs a master of its own",
    );
  }

  async #arrive(fresh: readonly Member[], late: readonly Member[], grace: number): Promise<void> {
    const { link, members, name, quorum } = this.#roster;
    const arrivals = members.map((member) =>
      fresh.includes(member) ? arrival(member.env) : Promise.resolve(),
    );
    const hopeless = members.length - quorum + 1;
    await settled(arrivals, (so) => fulfilled(so).length >= quorum || rejected(so).length >= hopeless);
    if (late.length === 0) return;
    await quietly(link.limited(name, Promise.allSettled(arrivals), grace));
    for (const { env } of late) AWAITED.add(env.link);
  }
}

function isFresh({ link }: Env): boolean {
  return link.losses === 0 && FRESH.includes(link.connection.status);
}

/** By link: the calls of a start-up share one. */
const ARRIVALS = new WeakMap<Link, Promise<void>>();

function arrival({ clock, link }: Env): Promise<void> {
  const under = ARRIVALS.get(link);
  if (under) return under;
  const arrived = awaitReady(clock, link).finally(() => ARRIVALS.delete(link));
  ARRIVALS.set(link, arrived);
  return arrived;
}

/** Resolves when the connection is ready; rejects when it fails or takes longer than a command may. */
function awaitReady(clock: Clock, link: Link): Promise<void> {
  const { connection, commandTimeout } = link;
  return new Promise((resolve, reject) => {
    const stop = (settle: () => void) => () => {
      for (const end of stops) end();
      settle();
    };
    const ready = stop(resolve);
    const failed = stop(() => reject(link.unavailable("")));
    const stops = [
      clock.after(commandTimeout, failed),
      onEvents(connection, ["ready"], ready),
      onEvents(connection, ["close"], failed),
    ];
    // One that connects lazily.
    if (connection.status === "wait") void quietly(connection.connect());
  });
}

/** By connection and server: locks are made anew all the time, servers are not. */
const RUN_IDS = new WeakMap<object, Map<string, Promise<string | undefined>>>();

/** The run id of the server that has the member's key; undefined if the user may not know it. */
function runIdOf({ env: { link }, backend }: Member): Promise<string | undefined> {
  const server = serverOf(link.connection, backend.key);
  const known = RUN_IDS.get(link) ?? new Map<string, Promise<string | undefined>>();
  RUN_IDS.set(link, known);
  const asked = known.get(server.address) ?? askRunId(link, server);
  known.set(server.address, asked);
  asked.catch(() => known.delete(server.address));
  return asked;
}

interface Server {
  readonly address: string;
  /** Of a cluster: the connection to it. */
  readonly node: Connection | undefined;
}

function serverOf(connection: Connection, key: string): Server {
  const address = masterAddress(connection, key);
  if (!isCluster(connection)) return { address, node: undefined };
  return { address, node: connection.nodes("master").find((node) => addressOf(node) === address) };
}

async function askRunId(link: Link, { node }: Server): Promise<string | undefined> {
  try {
    const asked = node ? link.limited("", node.call("INFO", "server")) : link.command("INFO", "server");
    return /^run_id:(\w+)/m.exec(String(await asked))?.[1];
  } catch (error) {
    if (isLockError(error, "UNSUPPORTED") || !isLockError(error)) return undefined;
    throw error;
  }
}
