/**
 * Random histories of semaphores and latches, like those of locks in model.test.ts: calls, time and mishaps; and
 * connections are cut in the middle of a call.
 */
import { playHistories } from "./suites.js";
import { checkableSynchronizers } from "./synchronizers/kinds.js";

playHistories("synchronizers.test.ts", 150, await checkableSynchronizers());
