/** Says what the calls on latches prove: each opens with its last count, and for everybody. Pure. */
import type { Finding } from "./checker.js";
import { type Entry, groupByLock, kindOf, MS } from "./history.js";

/**
 * @param total the counts of each latch, by all processes together
 * @param patience milliseconds within which a waiter is through
 */
export function checkLatches(entries: readonly Entry[], total: number, patience: number): Finding[] {
  const named = entries.map((entry) => ({ lock: entry.names[0] as string, entry }));
  const latches = groupByLock(named.filter(({ lock }) => kindOf(lock) === "latch"));
  return [...latches].flatMap(([lock, all]) => {
    const called = (what: string) => all.flatMap(({ entry }) => (entry.call === what ? [entry] : []));
    const find = (detail: string): Finding => ({ kind: "latch", lock, detail });
    const sets = called("set");
    const counts = called("count-down");
    const findings: Finding[] = [];
    const setters = sets.filter(({ answer }) => answer.answer === true).length;
    // The set of a call without an answer may have counted.
    const isOpen = sets.some(({ answeredAt }) => answeredAt === undefined);
    if (setters > 1 || (setters === 0 && !isOpen)) findings.push(find(`it was set by ${setters}`));
    const answered = counts.filter(({ answeredAt }) => answeredAt !== undefined);
    const opened =
      answered.length === total ? Math.max(...answered.map((each) => each.answeredAt as number)) : Infinity;
    for (const { id, at, answer, answeredAt = at } of called("await")) {
      const begun = counts.filter((each) => each.at < answeredAt).length;
      if (answer.answer === true && begun < total)
        findings.push(find(`${id} was through after ${begun} of ${total} counts`));
      const late = answeredAt - Math.max(at, opened);
      if (late > patience * MS)
        findings.push(find(`${id} waited ${Math.round(late / MS)} ms for what was open`));
    }
    return findings;
  });
}
