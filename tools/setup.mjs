// Makes a fresh clone ready to work in. Every npm script that needs it runs it first, so it prints nothing and
// takes a few milliseconds when nothing is to do. It uses nothing but Node, since nothing else is there yet.
//
//   node tools/setup.mjs              npm packages, then a Redis server
//   node tools/setup.mjs --packages   npm packages only
//   node tools/setup.mjs --docs       npm packages only, and those of docs/, which build the site of the documentation
//   node tools/setup.mjs --yes        may install Redis without being root (through sudo, or brew)
//
// Packages: `npm ci` runs in a folder whose node_modules is missing or lacks a package of its package-lock.json in that
// version. Packages beyond the lock file are left alone.
//
// Redis: the first of these ends the search.
//   1. HOLDFAST_REDIS_SERVER   path of a redis-server or valkey-server; an error if it cannot be executed
//   2. redis-server or valkey-server on PATH
//   3. REDIS_URL               somebody runs a server already, so nothing is installed
//   4. the package manager     as root, or with --yes; else the command to type is printed and the exit code is 1
//
// Tests and demo start servers of their own, on free ports and without files. So they need a server program even when
// REDIS_URL is set; case 3 says so. Some packages start a service on port 6379: it is neither used nor stopped.

import { spawnSync } from "node:child_process";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SERVER_NAMES = ["redis-server", "valkey-server"];
const FLAGS = ["--packages", "--docs", "--yes"];

// In the order they are looked for. Several packages: the first one the system knows is installed.
const PACKAGE_MANAGERS = [
  { command: "apt-get", refresh: ["update"], install: ["install", "-y"], packages: ["redis-server"] },
  { command: "dnf", install: ["install", "-y"], packages: ["valkey", "redis"] },
  { command: "apk", install: ["add"], packages: ["valkey", "redis"] },
  { command: "brew", install: ["install"], packages: ["valkey"], refusesRoot: true },
];

class SetupError extends Error {}

function say(text) {
  console.error(`setup: ${text}`);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(ROOT, path), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw new SetupError(`${path} cannot be read: ${error.message}`);
  }
}

/** npm notes what it installed in node_modules/.package-lock.json; optional packages may be missing there. */
function packagesAreCurrent(folder) {
  const wanted = readJson(join(folder, "package-lock.json"))?.packages ?? {};
  const installed = readJson(join(folder, "node_modules/.package-lock.json"))?.packages;
  if (!installed) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    const found = installed[path];
    if (!found) return entry.optional === true || entry.devOptional === true;
    // Builds of a package for other systems may stand in the lock file without their checksum.
    return found.version === entry.version && (!entry.integrity || found.integrity === entry.integrity);
  });
}

function installPackages(folder) {
  say(`installing the npm packages${folder && ` of ${folder}/`} (npm ci)`);
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = process.env.npm_execpath;
  const [command, before] = npm?.endsWith("npm-cli.js") ? [process.execPath, [npm]] : ["npm", []];
  const { status, error } = spawnSync(command, [...before, ...args], {
    cwd: join(ROOT, folder),
    stdio: ["ignore", 2, 2],
  });
  if (error) throw new SetupError(`npm could not be started: ${error.message}`);
  if (status !== 0) throw new SetupError("`npm ci` failed; its message is above");
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isOnPath(name) {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.some((folder) => isExecutable(join(folder, name)));
}

function hasServer() {
  const chosen = process.env.HOLDFAST_REDIS_SERVER;
  if (!chosen) return SERVER_NAMES.some(isOnPath);
  if (isExecutable(chosen)) return true;
  throw new SetupError(`HOLDFAST_REDIS_SERVER is ${chosen}, which is not a program that can be executed`);
}

function isRoot() {
  return process.getuid?.() === 0;
}

/** The whole line for a person to type, so it also refreshes the package lists of a new machine. */
function commandToType({ command, refresh, install, packages, refusesRoot }) {
  const sudo = isRoot() || refusesRoot || !isOnPath("sudo") ? "" : "sudo ";
  const steps = refresh ? [refresh, [...install, packages[0]]] : [[...install, packages[0]]];
  return steps.map((args) => `${sudo}${command} ${args.join(" ")}`).join(" && ");
}

function explainMissingServer(manager) {
  const lines = ["no redis-server or valkey-server was found on PATH."];
  if (manager) {
    lines.push(
      `Install one${manager.refusesRoot ? "" : ", as root,"} by:`,
      "",
      `    ${commandToType(manager)}`,
      "",
    );
    if (manager.refusesRoot || isOnPath("sudo")) lines.push("(`npm run setup -- --yes` does the same.)");
  } else {
    lines.push(
      `None of ${PACKAGE_MANAGERS.map(({ command }) => command).join(", ")} is there to install it either.`,
    );
    lines.push("Install Redis >= 6.2 or Valkey in your system's way.");
  }
  lines.push("Or name a server program that you have: HOLDFAST_REDIS_SERVER=/path/to/redis-server");
  return lines.join("\n");
}

function mayInstall(manager, yes) {
  return manager.refusesRoot ? yes && !isRoot() : yes || isRoot();
}

function runManager({ command, refusesRoot }, args) {
  const line = isRoot() || refusesRoot ? [command, ...args] : ["sudo", command, ...args];
  say(line.join(" "));
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  // stdin stays open because sudo may ask for a password; what is printed goes to stderr, as all of set-up does.
  return spawnSync(line[0], line.slice(1), { env, stdio: ["inherit", 2, 2] }).status === 0;
}

function installServer(manager) {
  // A package list that cannot be refreshed may still do: only the installation itself decides.
  if (manager.refresh) runManager(manager, manager.refresh);
  const installed = manager.packages.some((name) => runManager(manager, [...manager.install, name]));
  if (!installed || !hasServer()) {
    throw new SetupError(`Redis could not be installed.\n${explainMissingServer(manager)}`);
  }
}

function setUpRedis(yes) {
  if (hasServer()) return;
  if (process.env.REDIS_URL) {
    say(
      "REDIS_URL is set, so no Redis is installed. Tests and demo start servers of their own all the same:",
    );
    say("for them put redis-server or valkey-server on PATH, or set HOLDFAST_REDIS_SERVER to its path.");
    return;
  }
  const manager = PACKAGE_MANAGERS.find(({ command }) => isOnPath(command));
  if (!manager || !mayInstall(manager, yes)) throw new SetupError(explainMissingServer(manager));
  installServer(manager);
}

function main(flags) {
  const unknown = flags.find((flag) => !FLAGS.includes(flag));
  if (unknown !== undefined) throw new SetupError(`${unknown} is not one of ${FLAGS.join(", ")}`);
  const docs = flags.includes("--docs");
  for (const folder of docs ? ["", "docs"] : [""]) if (!packagesAreCurrent(folder)) installPackages(folder);
  if (!docs && !flags.includes("--packages")) setUpRedis(flags.includes("--yes"));
}

try {
  main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 1;
}
