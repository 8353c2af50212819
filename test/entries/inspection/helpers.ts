/** What the tests of `inspect` and `list` share. */
import type { LockClient, LockInfo } from "../../../src/index.js";

type ListOptions = Parameters<LockClient["list"]>[0];

/** Everything that `list` yields, in the order of the names. */
export async function listed(client: LockClient, options?: ListOptions): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for await (const info of client.list(options)) found.push(info);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export async function namesOf(client: LockClient, options?: ListOptions): Promise<string[]> {
  return (await listed(client, options)).map(({ name }) => name);
}
