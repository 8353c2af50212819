/** Ends the process when all output is written: a pipe may take some time. */
import { EXIT } from "./command.js";

/** True if the reader of a pipe has left, which is no fault of this program. */
export function isPipeLeft(error: NodeJS.ErrnoException): boolean {
  return error.code === "EPIPE";
}

export function exit(code: number): void {
  process.exitCode = code;
  process.stdout.write("", () => {
    const { errored } = process.stdout;
    const isLost = errored !== null && !isPipeLeft(errored);
    const told = isLost ? `holdfast: cannot write the output: ${errored.message}\n` : "";
    process.stderr.write(told, () => process.exit(isLost ? EXIT.failed : code));
  });
}
