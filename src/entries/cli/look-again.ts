/** For commands that look until they are told to end. */
import { monotonic } from "../../base/platform.js";
import { isLockError } from "../../index.js";
import { durationOf, type Option, type Task, UsageError } from "./command.js";
import { pause } from "./pause.js";

export const EVERY: Option = {
  type: "string",
  value: "TIME",
  help: "the time between two looks; 1s by default, 100ms at least",
};
const LEAST = 100;

/** Milliseconds between two looks. */
export function intervalOf({ options }: Task): number {
  const every = durationOf(options, "every") ?? 1_000;
  if (every < LEAST) throw new UsageError("--every must be at least 100ms");
  return every;
}

/**
 * Looks again and again. Once Redis has answered, the command reports a look without an answer and goes on. An operator
 * who watches a failover wants to see what comes after it.
 */
export async function lookAgain(task: Task, every: number, look: () => Promise<void>): Promise<never> {
  const { terminal, signal, reasonOf } = task;
  let answers: boolean | undefined;
  for (;;) {
    const begun = monotonic();
    try {
      await look();
      if (answers === false) terminal.tell("Redis answers again");
      answers = true;
    } catch (error) {
      if (answers === undefined || !isLockError(error, "UNAVAILABLE")) throw error;
      if (answers) terminal.tell(reasonOf(error));
      answers = false;
    }
    // Looks are further apart if a look takes long, so that the load on Redis stays low.
    await pause(answers ? Math.max(every, 4 * (monotonic() - begun)) : every, signal);
  }
}
