// A process that has just started: from its first line to the first lock. Loads nothing that the adapter does not need.
import { pathToFileURL } from "node:url";
import { makeEnv } from "./env.mjs";

const begun = performance.now();
const [adapterPath, config] = process.argv.slice(2);
const adapter = await import(pathToFileURL(adapterPath).href);
const env = makeEnv(JSON.parse(config), async () => (await import("./ioredis.mjs")).Redis);
const inst = await adapter.create(env);
const ready = performance.now();
const hold = await inst.acquire("bench:cold", 10_000);
const granted = performance.now();
await inst.release(hold);
// performance.now() counts from the start of the process.
process.send({ toReady: ready - begun, toGrant: granted - begun, fromExec: granted }, () => process.exit(0));
