/** The servers that the test has started for the blocks. */
import type { RedisOptions } from "ioredis";

/** Replies have ioredis' default shapes. */
export type ClientOptions = Omit<RedisOptions, "replyMapping">;

export interface Servers {
  /** Ports of independent masters; the first is what `new Redis()` connects to. */
  readonly masters: readonly number[];
  /** Options that lead to a master by its sentinels, if a block asks for that. */
  readonly sentinel: ClientOptions;
  /** The password of the servers behind the sentinels. */
  readonly password: string;
  readonly cluster: { readonly host: string; readonly port: number }[];
}

export const servers: Servers = JSON.parse(process.env.HOLDFAST_DOCS_SERVERS ?? "{}");
