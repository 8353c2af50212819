// What a run leaves: who and where, as JSON, and what was wrong.
import { execFileSync } from "node:child_process";
import { cpus, loadavg, totalmem } from "node:os";
import { version as ioredis } from "./ioredis.mjs";
import { PROGRAM } from "./redis.mjs";

export function machineOf(peers, skipped) {
  const redis = execFileSync(PROGRAM, ["--version"], { encoding: "utf8" });
  const libraries = peers.filter(({ meta }) => meta.version && meta.family === undefined);
  const [cpu] = cpus();
  return {
    date: new Date().toISOString(),
    machine: `${cpus().length} × ${cpu.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB`,
    load: loadavg(),
    versions: {
      node: process.version,
      redis: /v=(\S+)/.exec(redis)?.[1] ?? redis.trim(),
      ioredis,
      ...Object.fromEntries(libraries.map(({ meta }) => [meta.name, meta.version])),
    },
    notes: Object.fromEntries(peers.map(({ meta }) => [meta.name, meta.notes])),
    floors: peers.filter(({ meta }) => meta.floor).map(({ meta }) => meta.name),
    skipped,
  };
}

/** Numbers are short, and what has nothing inside it but these is on one line. */
export function toJson(results) {
  const short = (_, value) =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
  const onOneLine = (text) => text.replace(/\s+/g, " ");
  return `${JSON.stringify(results, short, 1)
    .replace(/\[[^[\]{}"]*\]/g, onOneLine)
    .replace(/\{[^{}]*\}/g, (text) => (text.length < 400 ? onOneLine(text) : text))}\n`;
}

/** `[{ name, n, id, title, variant }]` of all who were seen inside together with another. */
export function violationsOf({ scenarios }) {
  return scenarios.flatMap(({ id, title, variant, peers }) =>
    Object.entries(peers)
      .filter(([, { violations }]) => violations > 0)
      .map(([name, { violations: n }]) => ({ name, n, id, title, variant })),
  );
}
