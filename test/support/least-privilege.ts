/** The user of docs/production.md, with the rights of that page and no others, except that key names may be any. */
import { readFileSync } from "node:fs";

export const CONFINED: { readonly username: string; readonly password: string } = {
  username: "shop",
  password: "secret",
};

/** Arguments of redis-server that create the user; the rights for a cluster need Redis 7 or later. */
export function confinedUserArgs(withSharded: boolean): string[] {
  const page = readFileSync(new URL("../../docs/production.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```redis\n(.*?)^```/gms)].map(([, block = ""]) => block);
  const commands = blocks
    .join("")
    .replaceAll(/^ *#.*\n/gm, "")
    .split("ACL SETUSER shop")
    .slice(1);
  if (commands.length !== 3)
    throw new Error(`docs/production.md gives rights by ${commands.length} commands, not by 3`);
  const rules = commands.slice(0, withSharded ? 3 : 2).flatMap((text) => text.trim().split(/\s+/));
  const names = rules.map((rule) => (rule.startsWith("~") ? "~*" : rule.replace("{shop:", "{")));
  return ["--user", "shop", ...names];
}
