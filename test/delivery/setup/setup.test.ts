/** What `tools/setup.mjs` finds, installs and prints on machines of all sorts; see the comment at its top. */
import { describe, expect, test } from "vitest";
import { LOCKED, type Machine, putting, setUp } from "./machine.js";

interface Row extends Machine {
  /** Situation and outcome. */
  readonly title: string;
  /** Default: 0. */
  readonly code?: number;
  /** Default: none. */
  readonly calls?: readonly string[];
  /** Parts of what is printed. Default: nothing is printed. "any": whatever it is. */
  readonly prints?: readonly string[] | "any";
}

function run(rows: readonly Row[]): void {
  test.each(rows)("$title", async ({ code = 0, calls = [], prints = [], ...machine }) => {
    const outcome = await setUp(machine);
    expect(outcome).toMatchObject({ code, calls });
    if (prints === "any") return;
    for (const part of prints) expect(outcome.printed).toContain(part);
    if (prints.length === 0) expect(outcome.printed).toBe("");
    expect(outcome.printed).not.toContain("secret");
  });
}

const CI = { calls: ["npm ci --include=dev --no-audit --no-fund --loglevel=error"], prints: "any" } as const;
const PACKAGES = { flags: ["--packages"] };
const REQUIRED = Object.fromEntries(Object.entries(LOCKED).filter(([, { optional }]) => !optional));

describe("npm packages", () => {
  run([
    {
      title: "none are there: they are installed, and nobody asks for a server",
      installed: null,
      ...PACKAGES,
      ...CI,
    },
    {
      title: "those of the lock file are left alone, an optional one may be missing",
      installed: REQUIRED,
      ...PACKAGES,
    },
    { title: "some are missing: they are installed again", installed: {}, ...PACKAGES, ...CI },
    {
      title: "what cannot be installed ends the set-up",
      installed: null,
      programs: { npm: "exit 7" },
      ...CI,
      code: 1,
      prints: ["`npm ci` failed"],
    },
  ]);
});

const URL = "redis://user:secret@127.0.0.1:1";
const APT = { "apt-get": "" };

describe("a Redis server that is there", () => {
  run([
    { title: "redis-server on the PATH is enough", root: true, programs: { ...APT, "redis-server": "" } },
    {
      title: "HOLDFAST_REDIS_SERVER is enough",
      root: true,
      programs: { ...APT, "some-build": "" },
      env: { HOLDFAST_REDIS_SERVER: "$BIN/some-build" },
    },
    {
      title: "HOLDFAST_REDIS_SERVER that cannot be executed is an error, whatever else is there",
      root: true,
      programs: { ...APT, "redis-server": "" },
      env: { HOLDFAST_REDIS_SERVER: "/nowhere/redis-server", REDIS_URL: URL },
      code: 1,
      prints: ["HOLDFAST_REDIS_SERVER is /nowhere/redis-server"],
    },
    {
      title: "with REDIS_URL nothing is installed, and it is said what tests need",
      root: true,
      programs: APT,
      env: { REDIS_URL: URL },
      prints: ["Tests and demo start servers of their own"],
    },
  ]);
});

const INSTALL = ["apt-get update", "apt-get install -y redis-server"];

describe("no Redis server", () => {
  run([
    {
      title: "root: the package manager installs it",
      root: true,
      programs: { "apt-get": putting("redis-server") },
      calls: INSTALL,
      prints: "any",
    },
    {
      title: "not root: the package manager is not called, and the message names the command",
      programs: { "apt-get": "", sudo: "" },
      code: 1,
      prints: [`\n    ${INSTALL.map((line) => `sudo ${line}`).join(" && ")}\n`],
    },
    {
      title: "not root, but --yes: the package manager is called through sudo",
      programs: { "apt-get": putting("redis-server"), sudo: 'exec "$@"' },
      flags: ["--yes"],
      calls: INSTALL.flatMap((line) => [`sudo ${line}`, line]),
      prints: "any",
    },
    {
      title: "no package manager either: the message says what is needed",
      root: true,
      code: 1,
      prints: ["Redis >= 6.2 or Valkey", "HOLDFAST_REDIS_SERVER="],
    },
  ]);
});
