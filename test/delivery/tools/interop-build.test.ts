/** The Java side is built, or the tool says why it cannot be; the programs on the PATH are imitations. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";

const BUILD = fileURLToPath(new URL("../../../interop/build.mjs", import.meta.url));
/** A version that was never released, so that nothing is built for it. */
const VERSION = "0.0.1";

let bin: string;

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), "holdfast-build-"));
});
afterEach(() => rmSync(bin, { recursive: true }));

function program(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
}

const jdk = (version: string) => program("javac", `echo "javac ${version}"`);
/** A Maven that tells its version, and fails with these words otherwise. */
const maven = (words: string) =>
  program("mvn", `[ "$1" = "-version" ] && exit 0; echo "[ERROR] ${words}"; exit 1`);

function build(version = VERSION) {
  const env = { PATH: bin };
  const { status, stdout, stderr } = spawnSync(process.execPath, [BUILD, "--redisson", version], {
    env,
    encoding: "utf8",
  });
  return { status, stderr, built: status === 0 ? (JSON.parse(stdout) as unknown[])[0] : undefined };
}

test("without a JDK", () => {
  expect(build().built).toEqual({ version: VERSION, missing: "there is no JDK (javac) on PATH" });
});

test("with one that is too old", () => {
  jdk("11.0.2");
  const missing = "it needs JDK 17 or later, and javac 11.0.2 is here";
  expect(build().built).toEqual({ version: VERSION, missing });
});

test("without Maven", () => {
  jdk("21");
  expect(build().built).toEqual({ version: VERSION, missing: "there is no Maven (mvn) on PATH" });
});

test.each([
  "Could not transfer artifact a:b:pom:1 from/to central: Connection refused",
  "Plugin a:b:1 or one of its dependencies could not be resolved",
  "Unknown host repository",
])("without a repository: %s", (words) => {
  jdk("17.0.1");
  maven(words);
  const missing = `Maven cannot get what it needs: ${words}`;
  expect(build().built).toEqual({ version: VERSION, missing });
});

test.each(["COMPILATION ERROR", "Could not resolve a:b. Could not find artifact a:b:jar:0.0.1 in central"])(
  "what is our own fault is an error: %s",
  (words) => {
    jdk("17.0.1");
    maven(words);
    const { status, stderr } = build();
    expect(status).not.toBe(0);
    expect(stderr).toContain(words);
  },
);

test("a version that is none is an error", () => {
  const { status, stderr } = build("newest");
  expect(status).not.toBe(0);
  expect(stderr).toContain("newest is no version of Redisson");
});
