/**
 * `HOLDFAST_TEST_USER=least`: every connection that a server or a proxy makes for a test logs in as the user of
 * docs/guide.md, with the rights of that page and no others, except that key names may be any. Commands that only tests
 * send, and never the library, go over a connection of the default user: a new one for each call, so no count sees it.
 */
import { readFileSync } from "node:fs";
import { Redis, type RedisOptions } from "ioredis";

/** Whether this run uses the confined user. */
export const isConfined: boolean = process.env.HOLDFAST_TEST_USER === "least";

export const CONFINED: { readonly username: string; readonly password: string } = {
  username: "shop",
  password: "secret",
};

/** Commands that the library, or ioredis by itself, sends on a connection. */
const OWN = new Set(
  ["evalsha", "publish", "subscribe", "unsubscribe", "ping", "info", "scan", "wait", "select"].concat([
    "spublish",
    "ssubscribe",
    "sunsubscribe",
    "auth",
    "hello",
    "quit",
    "cluster",
    "asking",
  ]),
);

/** Arguments of redis-server that create the user; the rights for a cluster need Redis 7 or later. */
export function confinedUserArgs(withSharded: boolean): string[] {
  const guide = readFileSync(new URL("../../docs/guide.md", import.meta.url), "utf8");
  const blocks = [...guide.matchAll(/^```redis\n(.*?)^```/gms)].map(([, block = ""]) => block);
  const commands = blocks
    .join("")
    .replaceAll(/^ *#.*\n/gm, "")
    .split("ACL SETUSER shop")
    .slice(1);
  if (commands.length !== 3)
    throw new Error(`docs/guide.md gives rights by ${commands.length} commands, not by 3`);
  const rules = commands.slice(0, withSharded ? 3 : 2).flatMap((text) => text.trim().split(/\s+/));
  const names = rules.map((rule) => (rule.startsWith("~") ? "~*" : rule.replace("{shop:", "{")));
  return ["--user", "shop", ...names];
}

/** A connection of the confined user; commands that the library never sends go out as the default user. */
export function confined(options: Omit<RedisOptions, "replyMapping">): Redis {
  const redis = new Redis({ ...options, ...CONFINED });
  // A script of the tests starts with "-- a test".
  const isOwn = (name: string, text: unknown) => name === "eval" && !String(text).startsWith("-- a test");
  const others = redis.getBuiltinCommands().filter((name) => !OWN.has(name));
  const table = redis as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of [...others, "monitor"]) {
    const own = table[name]?.bind(redis);
    table[name] = async (...args) => {
      // ioredis names its connections, and ignores a refusal.
      const isName = name === "client" && /^set(name|info)$/i.test(String(args[0]));
      if (isName || isOwn(name, args[0])) return own?.(...args);
      const other = new Redis({ ...options, db: redis.options.db ?? 0 });
      other.on("error", () => {});
      try {
        return await (other as unknown as typeof table)[name]?.(...args);
      } finally {
        other.disconnect();
      }
    };
  }
  return redis;
}
