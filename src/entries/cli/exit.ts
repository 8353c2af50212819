/** Ends the process when all is written: a pipe takes its time. */
export function exit(code: number): void {
  process.exitCode = code;
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
}
