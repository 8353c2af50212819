// A measured process: loads one adapter and one scenario, then does what it is told.
import { pathToFileURL } from "node:url";
import { countNodeRedis, sentCommands, UNCOUNTED } from "./count.mjs";
import { makeEnv } from "./env.mjs";
import { Redis } from "./ioredis.mjs";

const CLOSE_MS = 300;

const [adapterPath, scenarioPath] = process.argv.slice(2);
const config = JSON.parse(process.env.BENCH_CONFIG);
const adapter = await import(pathToFileURL(adapterPath).href);
const { default: scenario } = await import(pathToFileURL(scenarioPath).href);
if (adapter.meta.client === "node-redis") countNodeRedis();

const env = makeEnv(config, async () => Redis);
const check = await env.connect(0);
check[UNCOUNTED] = true;

/** What the parts of a scenario that run in here get. */
const worker = {
  inst: await adapter.create(env),
  check,
  state: {},
  sent: sentCommands,
  cpuMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  },
  /** By CLOCK_MONOTONIC, which all processes share, in ms since `base`. */
  now: (base) => Number(process.hrtime.bigint() - base) / 1e6,
};

async function close() {
  const closed = Promise.resolve(worker.inst.close?.()).catch(() => {});
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, CLOSE_MS))]);
  process.exit(0);
}

process.on("message", async ({ id, name, args }) => {
  if (name === "close") return close();
  try {
    process.send({ id, value: await scenario.worker[name](worker, args ?? {}) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error).slice(0, 1_500) });
  }
});
process.on("disconnect", () => process.exit(0));
process.send({ ready: true });
