#!/usr/bin/env node
/** The program `holdfast`, for operators and shell scripts. It does nothing that users of the package cannot do. */
import { exit } from "./cli/exit.js";
import { main } from "./cli/main.js";

exit(await main(process.argv.slice(2), process));
