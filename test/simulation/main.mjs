// `npm run simulate`: plays schedules that a seed decides, and prints the shortest ones that fail.
//
//   npm run simulate                                          2,000 of all kinds, from a random seed
//   npm run simulate -- --schedules 300000 --seed 1           as many, from this seed on
//   npm run simulate -- --kind fair --schedules 1 --seed 815  one again, with all that happened if it fails
//   npm run simulate -- --planted barges                      those that show a mistake of planted.ts
//   npm run simulate -- --replay failed.json                  a schedule as it was printed, with --planted or not
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { bundle, simulate } from "./run.mjs";

const { values } = parseArgs({
  options: {
    schedules: { type: "string", default: "2000" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    kind: { type: "string" },
    planted: { type: "string" },
    replay: { type: "string" },
    processes: { type: "string" },
  },
});
const { kind } = values;
const planted = values.planted === undefined ? undefined : [values.planted];
const [schedules, seed] = [Number(values.schedules), Number(values.seed)];
if (!Number.isSafeInteger(schedules) || !Number.isSafeInteger(seed))
  throw new Error("--schedules and --seed must be whole numbers");

const processes = values.processes === undefined ? undefined : Number(values.processes);
await playSchedules(await bundle());

async function playSchedules(file) {
  if (values.replay) {
    const replay = JSON.parse(await readFile(values.replay, "utf8"));
    const { replayed } = await simulate(file, { replay, planted });
    console.log(replayed.lines.join("\n"));
    console.log(`hash ${replayed.hash}: ${replayed.failure ?? "nothing was wrong"}`);
    process.exitCode = replayed.failure === undefined ? 0 : 1;
  } else {
    const begun = performance.now();
    const { findings, played, calls, granted, operations, states } = await simulate(
      file,
      { schedules, seed, kind, planted },
      processes,
    );
    await mkdir("out/simulation", { recursive: true });
    for (const finding of findings) {
      const name = `out/simulation/${finding.kind}-${finding.seed}.json`;
      await writeFile(name, JSON.stringify(finding.shortest));
      console.log(`${finding.kind}, seed ${finding.seed}: ${finding.failure}`);
      console.log(`  npm run simulate -- --kind ${finding.kind} --schedules 1 --seed ${finding.seed}`);
      console.log(`  shortest: npm run simulate -- --replay ${name}`);
      console.log(`  ${JSON.stringify(finding.shortest)}`);
    }
    const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
    console.log(
      `${played} schedules from seed ${seed}, ${calls} calls, ${granted} granted, histories of ${operations} operations ` +
        `put in order by ${states} steps, ${findings.length} failed, in ${seconds} s`,
    );
    process.exitCode = findings.length === 0 ? 0 : 1;
  }
}
