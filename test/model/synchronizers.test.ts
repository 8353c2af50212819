/**
 * Random histories of semaphores and latches, as model.test.ts has of locks: with calls, time and mishaps, and
 * connections that are cut in the midst of a call.
 */
import { playHistories } from "./suites.js";
import { checkableSynchronizers } from "./synchronizers/kinds.js";

playHistories("synchronizers.test.ts", 250, await checkableSynchronizers());
