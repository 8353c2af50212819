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
const MORE = { ...LOCKED, "node_modules/tried-out": { version: "3.0.0", integrity: "sha512-c" } };
const other = (version: string, integrity: string) => ({ "node_modules/wanted": { version, integrity } });

describe("npm packages", () => {
  run([
    { title: "none are there: they are installed", installed: null, ...PACKAGES, ...CI },
    {
      title: "those of the lock file are left alone, an optional one may be missing",
      installed: REQUIRED,
      ...PACKAGES,
    },
    { title: "more than the lock file asks for are left alone", installed: MORE, ...PACKAGES },
    {
      title: "another version is installed again",
      installed: other("0.9.0", "sha512-a"),
      ...PACKAGES,
      ...CI,
    },
    {
      title: "another content is installed again",
      installed: other("1.0.0", "sha512-z"),
      ...PACKAGES,
      ...CI,
    },
    { title: "some are missing: they are installed again", installed: {}, ...PACKAGES, ...CI },
    { title: "those of docs/ are not installed with the others", installedDocs: null, ...PACKAGES },
    {
      title: "those of docs/ are installed there by --docs",
      installedDocs: null,
      flags: ["--docs"],
      ...CI,
      prints: ["the npm packages of docs/"],
    },
    { title: "those of docs/ that are there are left alone", installedDocs: LOCKED, flags: ["--docs"] },
    {
      title: "what cannot be installed ends the set-up",
      installed: null,
      programs: { npm: "exit 7" },
      ...CI,
      code: 1,
      prints: ["`npm ci` failed"],
    },
    { title: "--packages asks for no server", ...PACKAGES },
    {
      title: "an unknown flag is refused",
      flags: ["--yess"],
      code: 1,
      prints: ["--yess is not one of --packages, --docs, --yes"],
    },
  ]);
});

const URL = "redis://user:secret@127.0.0.1:1";
const APT = { "apt-get": "" };

describe("a Redis server that is there", () => {
  run([
    { title: "redis-server on the PATH is enough", root: true, programs: { ...APT, "redis-server": "" } },
    { title: "valkey-server on the PATH is enough", root: true, programs: { ...APT, "valkey-server": "" } },
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
    {
      title: "REDIS_URL next to a server program needs no words",
      programs: { "redis-server": "" },
      env: { REDIS_URL: URL },
    },
  ]);
});

const INSTALLS: readonly (readonly [manager: string, server: string, commands: readonly string[]])[] = [
  ["apt-get", "redis-server", ["apt-get update", "apt-get install -y redis-server"]],
  ["dnf", "valkey-server", ["dnf install -y valkey"]],
  ["apk", "valkey-server", ["apk add valkey"]],
];

describe("no Redis server", () => {
  run([
    ...INSTALLS.flatMap(([manager, server, calls]): Row[] => [
      {
        title: `root: ${manager} installs it`,
        root: true,
        programs: { [manager]: putting(server) },
        calls,
        prints: "any",
      },
      {
        title: `not root: ${manager} is not called, and the message names the command`,
        programs: { [manager]: "", sudo: "" },
        code: 1,
        prints: [`\n    ${calls.map((line) => `sudo ${line}`).join(" && ")}\n`],
      },
      {
        title: `not root, but --yes: ${manager} is called through sudo`,
        programs: { [manager]: putting(server), sudo: 'exec "$@"' },
        flags: ["--yes"],
        calls: calls.flatMap((line) => [`sudo ${line}`, line]),
        prints: "any",
      },
    ]),
    {
      title: "not root and no sudo: the command is named without it",
      programs: { apk: "" },
      code: 1,
      prints: ["as root", "\n    apk add valkey\n"],
    },
    { title: "brew asks first", programs: { brew: "" }, code: 1, prints: ["\n    brew install valkey\n"] },
    {
      title: "brew installs with --yes, without sudo",
      programs: { brew: putting("valkey-server"), sudo: "" },
      flags: ["--yes"],
      calls: ["brew install valkey"],
      prints: "any",
    },
    {
      title: "a system that does not know valkey gets redis",
      root: true,
      programs: { dnf: `[ "$3" = redis ] || exit 1\n${putting("redis-server")}` },
      calls: ["dnf install -y valkey", "dnf install -y redis"],
      prints: "any",
    },
    {
      title: "package lists that cannot be refreshed do not hinder",
      root: true,
      programs: { "apt-get": `[ "$1" = install ] || exit 100\n${putting("redis-server")}` },
      calls: ["apt-get update", "apt-get install -y redis-server"],
      prints: "any",
    },
    ...["exit 100", "exit 0"].map((script) => ({
      title: `an installation that puts no server on the PATH (${script}) is an error that names the command`,
      root: true,
      programs: { "apt-get": script },
      code: 1,
      calls: ["apt-get update", "apt-get install -y redis-server"],
      prints: ["could not be installed", "\n    apt-get update && apt-get install -y redis-server\n"],
    })),
    {
      title: "no package manager either: the message says what is needed",
      root: true,
      code: 1,
      prints: ["Redis >= 6.2 or Valkey", "HOLDFAST_REDIS_SERVER="],
    },
  ]);
});
