/** Random patterns for the names of keys, with classes that are closed or not. */
import type { Random } from "../../support/random.js";
import type { Case } from "./calls.js";

/** In a script, because servers give the names in different orders. */
const SCRIPT = `local names = redis.call('SCAN', '0', 'MATCH', ARGV[1], 'COUNT', '1000')[2]
table.sort(names)
return names`;

const NAMES = ["a", "b", "c", "d", "-", "]", "[", "^", "\\", "*", "_", "ab", "a]", "-b", "ab]"];
/** What comes in a pattern, and what comes in a class. */
const PARTS = ["*", "?", "a", "b", "]", "\\", "-"];
const MEMBERS = ["a", "b", "c", "d", "-", "-", "]", "[", "^", "\\", "*"];

export function randomPattern(random: Random): Case {
  const part = () =>
    random.chance(0.6)
      ? `[${random.many(["^", ""], 0, 1).join("")}${random.many(MEMBERS, 0, 5).join("")}]`
      : random.pick(PARTS);
  const parts = Array.from({ length: 1 + random.below(3) }, part).join("");
  const pattern = random.chance(0.2) ? parts.slice(0, -1) : parts;
  return { setUp: NAMES.map((name) => ["SET", name, "1"]), command: ["EVAL", SCRIPT, "0", pattern] };
}
