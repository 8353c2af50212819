/** Reads what clients have written about themselves. */
import { CLIENT_INDEX, clientKey } from "../base/names.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { type ClientInfo, type ClientTold, type Fields, read, type Told } from "./told.js";

/** The most clients that are read, so that a reader is not flooded. */
const MOST_CLIENTS = 1_000;

/** The first part of an owner id. */
export function clientIdOf(ownerId: string): string {
  return ownerId.slice(0, ownerId.lastIndexOf(":"));
}

/** What clients have written, by the questions of a reader. */
export class Presences {
  readonly #clients: ReadonlyMap<string, ClientTold>;

  constructor(clients: readonly ClientTold[]) {
    this.#clients = new Map(clients.map((each) => [each.client.id, each]));
  }

  /** The client of this owner id; undefined if that client has written nothing. */
  client(ownerId: string): ClientInfo | undefined {
    return this.#clients.get(clientIdOf(ownerId))?.client;
  }

  /** Since when this owner id holds a key, in epoch milliseconds, as its client has written it. */
  since(key: string, ownerId: string): number | undefined {
    const holds = this.#clients.get(clientIdOf(ownerId))?.holds ?? [];
    return holds.find((hold) => hold.ownerId === ownerId && hold.key === key)?.since;
  }

  waits(key: string): readonly (readonly [ClientInfo, Told])[] {
    return [...this.#clients.values()].flatMap(({ client, waits }) =>
      waits.filter((wait) => wait.key === key).map((wait) => [client, wait] as const),
    );
  }
}

/**
 * Reads from Redis what one client, or each client, has written. A key that may not be read, or that no client of this
 * library has written, counts as absent.
 */
export async function lookOut(runner: CommandRunner, own: ClientTold, clientId?: string): Promise<Presences> {
  const ids = clientId === undefined ? await idsOf(runner) : [clientId];
  const others = ids.filter((id) => id !== own.client.id);
  const told = await Promise.all(
    others.map(async (id) => {
      const fields = await runner.command("HGETALL", clientKey(id)).catch(() => []);
      return read(id, fieldsOf(fields)) ?? [];
    }),
  );
  return new Presences([own, ...told.flat()]);
}

async function idsOf(runner: CommandRunner): Promise<string[]> {
  // The latest clients first. The key of a client whose time is over has expired.
  const ids = runner.command("ZREVRANGE", CLIENT_INDEX, "0", String(MOST_CLIENTS - 1));
  return (await ids.catch(() => [])) as string[];
}

/** Redis clients return the reply of HGETALL as a list, an object or a map. */
function fieldsOf(reply: unknown): Fields {
  if (reply instanceof Map) return Object.fromEntries(reply) as Fields;
  if (!Array.isArray(reply)) return (reply ?? {}) as Fields;
  const fields: Record<string, unknown> = {};
  for (let i = 0; i < reply.length; i += 2) fields[String(reply[i])] = reply[i + 1];
  return fields;
}
