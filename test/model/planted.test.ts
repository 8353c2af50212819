import { checkableLocks } from "./locks.js";
import { mistakes } from "./planted.js";
import { findMistakes } from "./suites.js";

findMistakes(mistakes, await checkableLocks());
