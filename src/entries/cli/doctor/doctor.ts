/** `holdfast doctor`: whether a Redis is fit for locks. */
import { type Command, EXIT } from "../command.js";
import { within } from "../pause.js";
import type { Server } from "../server.js";
import { type Style, spell } from "../terminal.js";
import { CHECKS } from "./checks.js";
import { Facts } from "./facts.js";
import { type Check, type Finding, type Level, note, type Patient, timeOfPing } from "./finding.js";

const SOON = 1_000;
/** Milliseconds for one check; longer than the calls of the library take to tell that Redis is silent. */
const LONGEST = 8_000;
/** And as much as so many answers take: a check asks up to half as often, one after the other. */
const ANSWERS = 40;
const STYLES: Readonly<Record<Level, Style>> = { good: "green", note: "dim", poor: "yellow", bad: "red" };

export const doctor: Command = {
  name: "doctor",
  usage: "",
  summary: "checks whether this Redis is fit for locks, with why and cure of each finding",
  details: [
    "good; note: worth knowing; poor: you may lose locks by it; bad: locks do not work. The exit code is 1 for poor or bad.",
    "It takes and gives back a lock of a name of its own behind the prefix, on a cluster one on each master, and changes nothing",
    "else.",
  ],
  words: { least: 0, most: 0 },
  act: async ({ connect, terminal, options }) => {
    const { client, server } = connect();
    // Without any answer there is nothing to examine. One to PING is enough: Redis may refuse this user the name.
    await client
      .getLock("holdfast doctor")
      .isLocked()
      .catch(async (error) => {
        const answered = timeOfPing(server).catch(() => undefined);
        if ((await within(SOON, answered)) === undefined) throw error;
      });
    const ping = timeOfPing(server).catch(() => 0);
    const longest = LONGEST + ANSWERS * ((await within(LONGEST, ping)) ?? 0);
    const prefix = String(options.prefix ?? "");
    const patients = mastersOf(server).map(
      (master): Patient => ({ client, server, facts: new Facts(master), prefix }),
    );
    let isWell = true;
    const findings: object[] = [];
    for (const [what, check, ofEach] of CHECKS) {
      const results = await Promise.all(
        (ofEach ? patients : patients.slice(0, 1)).map((each) => run(check, each, longest)),
      );
      for (const { level, finding, why, cure } of distinct(results)) {
        if (level === "poor" || level === "bad") isWell = false;
        findings.push({ what, level, finding, why, cure });
        terminal.say(`${level.padEnd(4)}  ${what}: ${finding}`, STYLES[level]);
        if (why) terminal.say(`      why: ${why}`);
        if (cure) terminal.say(`      do:  ${cure}`);
      }
    }
    terminal.json(findings);
    return isWell ? EXIT.ok : EXIT.found;
  },
};

/** The masters of a cluster, or the server itself. */
function mastersOf(server: Server): readonly Server[] {
  const masters = server.nodes?.("master") ?? [];
  return masters.length > 0 ? masters : [server];
}

interface Result extends Finding {
  /** The server that was examined: `host:port`. */
  readonly on: string;
}

async function run(check: Check, patient: Patient, longest: number): Promise<Result> {
  const found = await within(longest, check(patient)).catch((error: Error) =>
    note(`unknown: ${error.message}`),
  );
  return { ...(found ?? note(`no answer within ${spell(longest)}`)), on: patient.facts.address };
}

/** A finding that all servers share is told once; where they differ, each finding names its servers. */
function distinct(results: readonly Result[]): readonly Finding[] {
  const groups = new Map<string, { first: Result; servers: string[] }>();
  for (const result of results) {
    const key = `${result.level} ${result.finding}`;
    const group = groups.get(key) ?? { first: result, servers: [] };
    groups.set(key, group);
    group.servers.push(result.on);
  }
  if (groups.size === 1) return results.slice(0, 1);
  return [...groups.values()].map(({ first, servers }) => ({
    ...first,
    finding: `${first.finding} (on ${servers.join(", ")})`,
  }));
}
