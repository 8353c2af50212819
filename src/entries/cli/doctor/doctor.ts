/** `holdfast doctor`: whether a Redis is fit for locks. */

import { type Command, EXIT } from "../command.js";
import { pause } from "../pause.js";
import type { Style } from "../terminal.js";
import { CHECKS, type Level, type Patient } from "./checks.js";
import { Facts } from "./facts.js";

const SOON = 1_000;
const STYLES: Readonly<Record<Level, Style>> = { good: "green", note: "dim", poor: "yellow", bad: "red" };

export const doctor: Command = {
  name: "doctor",
  usage: "",
  summary: "whether this Redis is fit for locks: each finding with its why and its cure",
  details: [
    "good; note: to know; poor: locks can get lost by it; bad: they do not work. The exit code is 1 if anything is poor or bad.",
    "It takes and gives back a lock of a name of its own behind the prefix, and changes nothing else.",
  ],
  words: { least: 0, most: 0 },
  act: async ({ connect, terminal }) => {
    const { client, server } = connect();
    const patient: Patient = { client, server, facts: new Facts(server) };
    // Without any answer there is nothing to examine. A node of a cluster may refer this key to another node, so an
    // answer to PING is enough.
    await client
      .getLock("holdfast doctor")
      .isLocked()
      .catch(async (error) => {
        const answers = server.call("PING").then(
          () => true,
          () => false,
        );
        if (!(await Promise.race([answers, pause(SOON).then(() => false)]))) throw error;
      });
    let isWell = true;
    const findings: object[] = [];
    for (const [what, check] of CHECKS) {
      const { level, finding, why, cure } = await check(patient).catch((error: Error) => ({
        level: "note" as const,
        finding: `cannot be found out: ${error.message}`,
        why: undefined,
        cure: undefined,
      }));
      if (level === "poor" || level === "bad") isWell = false;
      findings.push({ what, level, finding, why, cure });
      terminal.say(`${level.padEnd(4)}  ${what}: ${finding}`, STYLES[level]);
      if (why) terminal.say(`      why: ${why}`);
      if (cure) terminal.say(`      do:  ${cure}`);
    }
    terminal.json(findings);
    return isWell ? EXIT.ok : EXIT.found;
  },
};
