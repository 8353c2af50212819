/**
 * The core of the contract, for every kind of lock on any connection that a topology provides: what must hold on
 * Sentinel and on Cluster as on one server. It uses only the public interface of the library, so it needs no access to
 * the server. All other times that could wake a waiter are long, so a waiter that is woken in time was woken by a
 * message.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";
import { warmUpAtLast } from "../contract/helpers.js";
import { byName, KINDS, type Kind } from "../contract/kinds.js";
import { type Act, FAR } from "./core-act.js";
import { owning, sharing, tokensRise } from "./core-owning.js";
import { ending, waiting } from "./core-waiting.js";

/** What a topology provides for the core. */
export interface Place {
  /** A new connection at each call; the topology ends it. */
  connect(): RedisConnection;
  /** Options for all clients here. */
  readonly options?: LockClientOptions;
  /** The endings for names of locks that are waited for. */
  readonly endings?: readonly string[];
  readonly kinds?: readonly Kind[];
}

let names = 0;

export function coreOfTheContract(title: string, place: Place): void {
  describe.concurrent.each(byName(place.kinds ?? KINDS))(`${title}: %s`, (_, kind) => {
    describe.sequential("the core of the contract", () => {
      const clients: LockClient[] = [];
      const connect = (options: LockClientOptions): LockClient => {
        const client = new LockClient(place.connect(), { ...place.options, ...options });
        clients.push(client);
        return client;
      };
      let ours: LockClient;
      let theirs: LockClient;
      beforeAll(async () => {
        [ours, theirs] = [connect(FAR), connect(FAR)];
        for (const client of [ours, theirs]) await warmUpAtLast(kind.make(client, freshName()));
      });
      afterAll(() => Promise.all(clients.map((client) => client.close({ timeout: 0 }))));
      const act = (mine = ours, ending = ""): Act => {
        const name = freshName() + ending;
        return {
          ours: mine,
          theirs,
          lock: kind.make(mine, name),
          excluded: kind.rival.make(mine, name),
          rival: kind.rival.make(theirs, name),
          twin: kind.make(theirs, name),
        };
      };
      owning(act);
      sharing(act, kind);
      waiting(act, place.endings);
      ending(act, connect);
      if (kind.kind === "fenced") tokensRise(act);
    });
  });
}

function freshName(): string {
  return `core-${++names}.`;
}
