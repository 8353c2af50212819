/** Random histories of calls, time and mishaps on real locks, compared with a model of the contract. */
import { checkableLocks } from "./locks.js";
import { playHistories } from "./suites.js";

playHistories("model.test.ts", 200, await checkableLocks());
