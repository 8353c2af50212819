// `npm run soak -- --minutes 20 --topology cluster --kinds all --seed 7`: all kinds of locks under random faults. The
// exit code is 1 if a lock had two owners, a waiter was not woken, a permit was lost, or anything else went wrong.
//   --minutes   default 10
//   --topology  single (default), sentinel, cluster, or redlock: five masters
//   --kinds     all (default), or some kinds of the topology, separated by commas
//   --seed      of the plan of faults; default a random one
//   --planted   a mistake of test/simulation/planted.lua, to prove that the soak finds it
// The report is in out/soak, as JSON.
import { randomInt } from "node:crypto";
import { register } from "node:module";
import { parseArgs } from "node:util";

register("./typescript.mjs", import.meta.url);
const { TOPOLOGIES } = await import("./sites.ts");
const { Campaign, kindsOn } = await import("./campaign.ts");
const { passed, summaryOf, write } = await import("./report.ts");

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    topology: { type: "string", default: "single" },
    kinds: { type: "string", default: "all" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    planted: { type: "string" },
  },
});
const { topology, planted } = values;
const seconds = 60 * Number(values.minutes);
if (!(seconds > 0)) throw new RangeError("--minutes must be a number above 0");
if (!TOPOLOGIES.includes(topology))
  throw new RangeError(`--topology must be one of ${TOPOLOGIES.join(", ")}`);
const all = kindsOn(topology);
const kinds = values.kinds === "all" ? all : values.kinds.split(",");
const unknown = kinds.filter((kind) => !all.includes(kind));
if (unknown.length > 0)
  throw new RangeError(`${topology} has no ${unknown.join(", ")}: it has ${all.join(", ")}`);
const seed = Number(values.seed);
if (!Number.isSafeInteger(seed)) throw new RangeError("--seed must be a whole number");

const options = { topology, kinds, seconds, seed, ...(planted ? { planted } : {}) };
const command =
  `npm run soak -- --minutes ${values.minutes} --topology ${topology} --kinds ${values.kinds} --seed ${seed}` +
  (planted ? ` --planted "${planted}"` : "");
console.log(command);
// Without `process.exit` Node 20 may spin for ever while it cleans up its own handles.
process.exit(await run());

async function run() {
  const campaign = await Campaign.prepare(options);
  const timer = setInterval(() => tell(campaign.status), 1_000);
  try {
    await campaign.run();
  } finally {
    clearInterval(timer);
    await campaign[Symbol.asyncDispose]();
  }
  if (process.stdout.isTTY) process.stdout.write("\n");
  console.log(summaryOf(campaign).join("\n"));
  for (const { round, kind, lock, detail } of campaign.violations.slice(0, 20)) {
    console.log(`VIOLATION in round ${round}: ${kind} of ${lock}: ${detail}`);
  }
  for (const error of campaign.errors.slice(0, 20)) console.log(`ERROR ${error}`);
  console.log(`report: ${await write(campaign, command)}`);
  console.log(passed(campaign) ? "passed" : "FAILED");
  return passed(campaign) ? 0 : 1;
}

/** Prints the status: on a terminal one line that is overwritten, else a new line every ten seconds. */
function tell(line) {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
  else if (Number.parseInt(line, 10) % 10 === 0) console.log(line);
}
