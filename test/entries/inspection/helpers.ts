/** What the tests of `inspect` and `list` share. */
import type { LockClient, LockClientOptions, LockInfo } from "../../../src/index.js";
import { openVirtual, PLAIN, type VirtualPlace } from "../../support/place/index.js";

type ListOptions = Parameters<LockClient["list"]>[0];

export const ALL = { kinds: "all" } as const;

/** Everything that `list` yields, in the order of the names. */
export async function listed(client: LockClient, options?: ListOptions): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for await (const info of client.list(options)) found.push(info);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function namesOf(client: LockClient, options?: ListOptions): Promise<string[]> {
  return (await listed(client, options)).map(({ name }) => name);
}

/** A place with short words for what others do on its server, in lines as for redis-cli. */
export function open(options?: LockClientOptions): VirtualPlace & { call(line: string): unknown } {
  const place = openVirtual(PLAIN, options);
  return Object.assign(place, { call: (line: string) => place.server.execute(line.split(" ")) });
}
