/** Ends the process when all output is written: a pipe may take some time. */
export function exit(code: number): void {
  process.exitCode = code;
  process.stdout.write("", () => process.stderr.write("", () => process.exit(code)));
}
