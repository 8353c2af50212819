#!/usr/bin/env node
/** The program `holdfast`: what operators and shell scripts type. It does nothing that users of the package cannot. */
import { exit } from "./cli/exit.js";
import { main } from "./cli/main.js";

exit(await main(process.argv.slice(2), process));
