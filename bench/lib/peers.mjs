// Who is compared: the adapters of this folder and those named by --adapter, as far as their packages are installed.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const HERE = fileURLToPath(new URL("..", import.meta.url));

const readJson = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined);

/** All modules of a folder. */
export function modulesIn(folder) {
  const files = readdirSync(join(HERE, folder)).filter((file) => file.endsWith(".mjs"));
  return Promise.all(files.sort().map((file) => moduleAt(join(HERE, folder, file))));
}

async function moduleAt(file) {
  return { file, module: await import(pathToFileURL(file).href) };
}

function isInstalled() {
  const wanted = readJson(join(HERE, "package-lock.json"))?.packages ?? {};
  const installed = readJson(join(HERE, "node_modules/.package-lock.json"))?.packages;
  if (!installed) return false;
  return Object.entries(wanted).every(
    ([path, { version }]) => path === "" || installed[path]?.version === version,
  );
}

/**
 * Installs what package.json here pins, without running any script of it. A peer may ask for a newer Node than this
 * one. `npm run` hands the project's own strictness down, under which none of the peers would be there.
 */
export function install() {
  if (isInstalled()) return;
  console.log("bench: installing the peers (npm ci in bench/)");
  const { status, stdout, stderr } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-engine-strict"], {
    cwd: HERE,
    encoding: "utf8",
  });
  if (status !== 0) console.log(`bench: npm ci failed, so peers are skipped\n${stdout}${stderr}`);
}

const versionOf = (name) => readJson(join(HERE, "node_modules", name, "package.json"))?.version;

function described({ file, module: { meta, setup } }, external = false) {
  const isPeer = !meta.floor && meta.family === undefined && meta.name !== "holdfast" && !external;
  const version = isPeer ? versionOf(meta.package) : meta.version;
  const missing = isPeer && version === undefined ? `${meta.package} is not installed in bench/` : undefined;
  return { file, setup, missing, meta: { ...meta, isPeer, external, version }, env: {} };
}

/** The adapters of this library once more, of another checkout. */
function atOther(adapters, checkout) {
  const ours = adapters.filter(({ meta: { name, family = name } }) => family === "holdfast");
  const home = resolve(checkout);
  return ours.map((adapter) => ({
    ...adapter,
    env: { HOLDFAST: home },
    meta: { ...adapter.meta, name: `${adapter.meta.name}@${basename(home)}`, of: adapter.meta.name },
  }));
}

/**
 * `names`: those alone, besides floors. `adapters`: paths of more. `against`: another checkout of this library.
 * Resolves with those to run and, by name, why others cannot be.
 */
export async function findPeers({ names, adapters: paths = [], against }) {
  const own = (await modulesIn("adapters")).map((each) => described(each));
  const external = (await Promise.all(paths.map((path) => moduleAt(resolve(path))))).map((each) =>
    described(each, true),
  );
  const others = against === undefined ? [] : atOther(own, against);
  const all = [...own, ...others, ...external];
  const known = (name) => all.some(({ meta }) => [meta.name, meta.family].includes(name));
  const unknown = (names ?? []).filter((name) => !known(name));
  if (unknown.length > 0) {
    const there = all.map(({ meta }) => meta.name).join(", ");
    throw new Error(`no such peer: ${unknown.join(", ")}; there are ${there}`);
  }
  const wanted = ({ meta }) =>
    meta.floor ||
    meta.external ||
    meta.of ||
    !names ||
    names.includes(meta.name) ||
    names.includes(meta.family);
  const rank = ({ meta }) => [!meta.floor, meta.isPeer].filter(Boolean).length;
  const chosen = all.filter(wanted).sort((a, b) => rank(a) - rank(b));
  return {
    peers: chosen.filter(({ missing }) => missing === undefined),
    skipped: Object.fromEntries(
      chosen.filter(({ missing }) => missing).map(({ meta, missing }) => [meta.name, missing]),
    ),
  };
}
