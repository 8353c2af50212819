/** The Java side is built, or the tool says why it cannot be; the programs on the PATH are imitations. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const BUILD = fileURLToPath(new URL("../../../interop/build.mjs", import.meta.url));
/** A version that was never released, so that nothing is built for it. */
const VERSION = "0.0.1";

const jdk = (version: string) => ({ javac: `echo "javac ${version}"` });
/** A Maven that tells its version, and fails with these words otherwise. */
const maven = (words: string) => ({
  ...jdk("17.0.1"),
  mvn: `[ "$1" = "-version" ] && exit 0; echo "[ERROR] ${words}"; exit 1`,
});

const AWAY = "Could not transfer artifact a:b:pom:1 from/to central: Connection refused";
const UNRESOLVED = "Plugin a:b:1 or one of its dependencies could not be resolved";
const MISSING = "Could not resolve a:b. Could not find artifact a:b:jar:0.0.1 in central";

interface Row {
  readonly title: string;
  readonly programs: Readonly<Record<string, string>>;
  readonly version?: string;
  /** Why nothing is built; undefined if the build fails with `error`. */
  readonly missing?: string;
  readonly error?: string;
}

test.each<Row>([
  { title: "there is no JDK", programs: {}, missing: "there is no JDK (javac) on PATH" },
  {
    title: "the JDK is too old",
    programs: jdk("11.0.2"),
    missing: "it needs JDK 17 or later, and javac 11.0.2 is here",
  },
  { title: "there is no Maven", programs: jdk("21"), missing: "there is no Maven (mvn) on PATH" },
  ...[AWAY, UNRESOLVED, "Unknown host repository"].map((words) => ({
    title: `there is no repository: ${words}`,
    programs: maven(words),
    missing: `Maven cannot get what it needs: ${words}`,
  })),
  ...["COMPILATION ERROR", MISSING].map((words) => ({
    title: `what is our own fault is an error: ${words}`,
    programs: maven(words),
    error: words,
  })),
  {
    title: "a version that is none is an error",
    programs: {},
    version: "newest",
    error: "newest is no version of Redisson",
  },
])("$title", ({ programs, version = VERSION, missing, error }) => {
  const bin = mkdtempSync(join(tmpdir(), "holdfast-build-"));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const args = [BUILD, "--redisson", version];
  const ended = spawnSync(process.execPath, args, { env: { PATH: bin }, encoding: "utf8" });
  rmSync(bin, { recursive: true });
  if (missing) expect(JSON.parse(ended.stdout)).toEqual([{ version, missing }]);
  else expect([ended.status === 0, ended.stderr]).toEqual([false, expect.stringContaining(error ?? "")]);
});
