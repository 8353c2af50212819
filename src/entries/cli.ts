#!/usr/bin/env node
/** The program `holdfast`, for operators and shell scripts. It does nothing that users of the package cannot do. */
import { EXIT } from "./cli/command.js";
import { isPipeLeft, main } from "./cli/main.js";

const code = await main(process.argv.slice(2), process);
process.exitCode = code;
// It ends when all output is written: a pipe may take some time.
process.stdout.write("", () => {
  const { errored } = process.stdout;
  const isLost = errored !== null && !isPipeLeft(errored);
  const told = isLost ? `holdfast: cannot write the output: ${errored.message}\n` : "";
  process.stderr.write(told, () => process.exit(isLost ? EXIT.failed : code));
});
