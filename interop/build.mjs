// Builds the driver for a version of Redisson, or says why it cannot be built here. Nothing is done if it stands already.
//
//   node interop/build.mjs                      for the versions that pom.xml names
//   node interop/build.mjs --redisson 3.40.0    for another, any number of times
//
// Prints a JSON array of `{ version, classpath }`, or of `{ version, missing }` with the reason.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const SOURCES = join(FOLDER, "src/main/java");
const NEWEST_FIRST = ["redisson.4", "redisson.3"];
const OLDEST_JDK = 17;
/** Ms. A repository that never answers is one that cannot be reached. */
const LONGEST_BUILD = 180_000;

/** What Maven says when it cannot get something, whatever that is. */
const OUT_OF_REACH =
  /could not (be )?(resolve|transfer)|cannot access|unknown host|connection (refused|timed out|reset)|unreachable|ETIMEDOUT/i;
/** What it says of a version that was never published; a repository may be behind with a new one. */
const NO_SUCH = /could not find artifact/i;

/** The versions that the tests run against, unless they are told others. */
export function pinnedVersions() {
  const pom = readFileSync(join(FOLDER, "pom.xml"), "utf8");
  return NEWEST_FIRST.map((property) => {
    const [, version] = new RegExp(`<${property.replace(".", "\\.")}>([^<]+)<`).exec(pom) ?? [];
    if (version === undefined) throw new Error(`interop/pom.xml does not say what ${property} is`);
    return version;
  });
}

/** @param {string} text what somebody takes for a version of Redisson */
export function isVersion(text) {
  return /^\d+\.\d+\.\d+$/.test(text);
}

/**
 * @param {string} version of Redisson
 * @returns {{ version: string, classpath: string } | { version: string, missing: string }}
 */
export function buildDriver(version) {
  if (!isVersion(version)) throw new RangeError(`${version} is no version of Redisson`);
  const target = join(FOLDER, "target", version);
  const stamp = join(target, "built-from");
  const sources = hashOfSources();
  const built = { version, classpath: [join(target, "classes"), join(target, "lib", "*")].join(delimiter) };
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === sources) return built;
  const missing = findMissingProgram();
  if (missing !== undefined) return { version, missing };
  const { status, output } = run(
    "mvn",
    "-q",
    "-B",
    "-Dstyle.color=never",
    "-f",
    FOLDER,
    `-Dredisson.version=${version}`,
    "compile",
  );
  if (status !== 0) {
    if ((NO_SUCH.test(output) && !pinnedVersions().includes(version)) || !OUT_OF_REACH.test(output))
      throw new Error(`the driver for Redisson ${version} was not built:\n${output}`);
    return { version, missing: `Maven cannot get what it needs: ${firstError(output)}` };
  }
  writeFileSync(stamp, sources);
  return built;
}

function findMissingProgram() {
  const jdk = run("javac", "-version");
  if (jdk.status !== 0) return "there is no JDK (javac) on PATH";
  const [major] = /\d+/.exec(jdk.output) ?? [];
  if (Number(major) < OLDEST_JDK)
    return `it needs JDK ${OLDEST_JDK} or later, and ${jdk.output.trim()} is here`;
  if (run("mvn", "-version").status !== 0) return "there is no Maven (mvn) on PATH";
  return undefined;
}

function run(program, ...args) {
  const options = { encoding: "utf8", timeout: LONGEST_BUILD };
  const { status, error, stdout, stderr } = spawnSync(program, args, options);
  return { status: error ? -1 : status, output: error ? error.message : `${stdout}${stderr}` };
}

function firstError(output) {
  const line = output.split("\n").find((each) => each.includes("[ERROR]")) ?? output;
  return line.replace("[ERROR]", "").trim().slice(0, 300);
}

function hashOfSources() {
  const files = readdirSync(SOURCES, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  const hash = createHash("sha256");
  for (const file of [join(FOLDER, "pom.xml"), ...files]) hash.update(readFileSync(file)).update("\0");
  return hash.digest("hex");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { redisson: { type: "string", multiple: true } } });
  const versions = values.redisson ?? pinnedVersions();
  console.log(JSON.stringify(versions.map(buildDriver)));
}
