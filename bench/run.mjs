// `npm run bench`, or `node bench/run.mjs` after a build: this library beside floors and peers. README.md says what, how and with which flags.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describe, fitsOf } from "./lib/growth.mjs";
import { findPeers, HERE, install, modulesIn } from "./lib/peers.mjs";
import { canPin } from "./lib/pin.mjs";
import { Server } from "./lib/redis.mjs";
import { machineOf, toJson, violationsOf } from "./lib/results.mjs";
import { live, runVariant } from "./lib/runner.mjs";
import { text } from "./lib/tables.mjs";
import { compareWithRedisson } from "./redisson.mjs";
import { writeReport } from "./report.mjs";

const list = (value) => value?.split(",").map((each) => each.trim());

const { values: flags } = parseArgs({
  options: {
    full: { type: "boolean", default: false },
    peers: { type: "string" },
    scenarios: { type: "string" },
    variants: { type: "string" },
    seconds: { type: "string", default: "0.5" },
    repeats: { type: "string", default: "5" },
    out: { type: "string", default: join(HERE, "out") },
    adapter: { type: "string" },
    against: { type: "string" },
    "no-install": { type: "boolean", default: false },
    "no-pin": { type: "boolean", default: false },
  },
});

/** Not among the files of scenarios/: it has another way to measure, on both sides. */
const REDISSON = "redisson";

/** A slice is not shorter than this: a process needs some time to be itself. */
const LEAST_SLICE_MS = 50;

async function findScenarios() {
  const all = (await modulesIn("scenarios"))
    .map(({ file, module }) => ({ file, ...module.default }))
    .sort((a, b) => a.order - b.order);
  const wanted = list(flags.scenarios);
  const unknown = (wanted ?? []).filter(
    (id) => id !== REDISSON && !all.some((scenario) => scenario.id === id),
  );
  if (unknown.length > 0) {
    throw new Error(
      `no such scenario: ${unknown.join(", ")}; there are ${all.map(({ id }) => id).join(", ")}`,
    );
  }
  const begins = list(flags.variants);
  const isWanted = ({ label, full }) =>
    (flags.full || !full) && (!begins || begins.some((text) => label.startsWith(text)));
  return all
    .filter(({ id }) => !wanted || wanted.includes(id))
    .map((scenario) => ({ ...scenario, variants: scenario.variants.filter(isWanted) }));
}

function save(results, begun) {
  results.tookS = (performance.now() - begun) / 1_000;
  mkdirSync(flags.out, { recursive: true });
  writeReport(results, flags.out);
  writeFileSync(join(flags.out, "results.json"), toJson(results));
}

async function main() {
  const begun = performance.now();
  if (!flags["no-install"]) install();
  const names = list(flags.peers);
  const { peers, skipped } = await findPeers({
    names: names?.filter((name) => name !== REDISSON),
    adapters: list(flags.adapter),
    against: flags.against,
  });
  const scenarios = await findScenarios();
  const repeats = Number(flags.repeats);
  const sliceMs = Math.max(LEAST_SLICE_MS, (1_000 * Number(flags.seconds)) / repeats);
  const pin = !flags["no-pin"] && canPin();
  const isNamed = names && ((name) => names.includes(name));
  const settings = { full: flags.full, seconds: Number(flags.seconds), repeats, pinned: pin };
  const results = { ...machineOf(peers, skipped), settings, scenarios: [] };
  for (const [name, why] of Object.entries(skipped)) console.log(`skipped ${name}: ${why}`);

  const servers = [];
  const end = async () => {
    for (const child of live) child.kill();
    await Promise.all(servers.map((server) => server.stop()));
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => end().then(() => process.exit(130)));
  try {
    const need = Math.max(
      1,
      ...scenarios.flatMap(({ variants }) => variants.map((variant) => variant.servers ?? 1)),
    );
    for (let i = 0; i < need; i++) servers.push(await Server.start());
    for (const scenario of scenarios) {
      for (const variant of scenario.variants) {
        const entry = await runVariant(scenario, variant, {
          peers,
          servers,
          repeats,
          sliceMs,
          pin,
          isFull: flags.full,
          isNamed,
        });
        results.scenarios.push(entry);
        console.log(text(entry));
        save(results, begun);
      }
    }
  } finally {
    await end();
  }
  results.fits = fitsOf(scenarios, results.scenarios);
  for (const fit of results.fits) console.log(describe(fit));
  save(results, begun);
  if (flags.scenarios ? list(flags.scenarios).includes(REDISSON) : !names || names.includes(REDISSON)) {
    results.redisson = await compareWithRedisson().catch((error) => ({
      missing: `it failed: ${error.message}`,
    }));
    save(results, begun);
    if (results.redisson.missing) console.log(`Without Redisson: ${results.redisson.missing}`);
  }
  console.log(`\ntook ${results.tookS.toFixed(0)} s; wrote ${flags.out}`);
  const violations = violationsOf(results);
  for (const { name, n, id, variant } of violations) {
    console.log(`VIOLATION ${name}: ${n} in ${id} (${variant})`);
  }
  process.exitCode = violations.length > 0 ? 1 : 0;
}

await main();
