import { findMistakes } from "./suites.js";
import { checkableSynchronizers } from "./synchronizers/kinds.js";
import { mistakes } from "./synchronizers/mistakes.js";

findMistakes(mistakes, await checkableSynchronizers());
