/** Random single commands with arguments of any kind, also those that are refused. */
import { COMMANDS } from "../../../src/entries/testing/commands.js";
import type { Random } from "../../support/random.js";
import type { Case } from "./calls.js";
import { stateOf } from "./states.js";
import { NUMERALS, OWNERS, score, TERMS, TEXTS } from "./vocabulary.js";

/** Commands whose answers cannot be compared: they are random, in another order, or differ between the servers. */
const UNLIKE = new Set(["hrandfield", "scan", "wait", "ping"]);

const NAMES = [...Object.keys(COMMANDS).filter((name) => !UNLIKE.has(name)), "nope", "publish"];

/** The most words after the key, for commands with forms that the library never sends. */
const MOST: Readonly<Record<string, number>> = { lpop: 0, pexpire: 1, set: 3, zrange: 3, zrevrange: 3 };

const OPTIONS = "PX px XX GT xx WITHSCORES withscores BYSCORE byscore WITHVALUES -inf inf (5 ( +inf".split(
  " ",
);
const SHAPES = ["lock", "queue", "timeouts", "permits", "counter", "marker"];

export function randomCommand(random: Random, now: number): Case {
  const name = random.pick(NAMES);
  const keys = ["k1", "k2"];
  const setUp = keys.flatMap((key) => stateOf(random, random.pick(SHAPES), key, now));
  const words = (least: number, most: number) =>
    Array.from({ length: least + random.below(most - least + 1) }, () => word(random, now));
  const { arity = -2 } = COMMANDS[name] ?? {};
  // Mostly as many words as the command takes.
  const least = Math.max(0, Math.abs(arity) - 2);
  const some = random.chance(0.85) ? words(least, arity < 0 ? least + 3 : least) : words(0, 5);
  const rest = some.slice(0, MOST[name]).filter((each) => name !== "set" || !/^(xx|gt)$/i.test(each));
  const called = [random.chance(0.5) ? name : name.toUpperCase(), random.pick(keys), ...rest];
  // In a script, because ioredis changes the arguments and answers of some commands.
  return { setUp, command: ["EVAL", "return redis.pcall(unpack(ARGV))", "0", ...called] };
}

function word(random: Random, now: number): string {
  const times = TERMS.map(String);
  const choices = [NUMERALS, ["0", "1", "-1", "2", "-2"], OWNERS, TEXTS, OPTIONS, times, ["k1", "k2"]];
  return random.chance(0.15) ? score(random, now) : random.pick(random.pick(choices));
}
