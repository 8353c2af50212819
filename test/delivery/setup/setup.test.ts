/** What `tools/setup.mjs` finds, installs and prints on machines of all sorts; see the comment at its top. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LOCKED, Machine } from "./machine.js";

const NPM_CI = "npm ci --include=dev --no-audit --no-fund --loglevel=error";
const NOTHING = { code: 0, printed: "", calls: [] };

let machine: Machine;

beforeEach(async () => {
  machine = await Machine.create();
});

afterEach(async () => {
  await machine.remove();
});

describe("npm packages", () => {
  test("are installed when there are none", async () => {
    const { code, calls } = await machine.setUp(["--packages"]);
    expect({ code, calls }).toEqual({ code: 0, calls: [NPM_CI] });
  });

  test("are left alone when they are those of the lock file; an optional one may be missing", async () => {
    const required = Object.entries(LOCKED).filter(([, entry]) => !entry.optional);
    await machine.setInstalled(Object.fromEntries(required));
    expect(await machine.setUp(["--packages"])).toEqual(NOTHING);
  });

  test("are left alone when there are more than the lock file asks for", async () => {
    await machine.setInstalled({
      ...LOCKED,
      "node_modules/tried-out": { version: "3.0.0", integrity: "sha512-c" },
    });
    expect(await machine.setUp(["--packages"])).toEqual(NOTHING);
  });

  test.each([
    ["another version", { "node_modules/wanted": { version: "0.9.0", integrity: "sha512-a" } }],
    ["another content", { "node_modules/wanted": { version: "1.0.0", integrity: "sha512-z" } }],
    ["not all of them", {}],
  ])("are installed again when there is %s", async (_what, installed) => {
    await machine.setInstalled(installed);
    expect((await machine.setUp(["--packages"])).calls).toEqual([NPM_CI]);
  });

  test("of docs/ are installed there, by --docs alone", async () => {
    await machine.setInstalled(LOCKED);
    await machine.lock("docs");
    expect(await machine.setUp(["--packages"])).toEqual(NOTHING);
    const { code, calls, printed } = await machine.setUp(["--docs"]);
    expect({ code, calls }).toEqual({ code: 0, calls: [NPM_CI] });
    expect(printed).toContain("the npm packages of docs/");
    await machine.setInstalled(LOCKED, "docs");
    // One call in all: nothing more is installed.
    expect((await machine.setUp(["--docs"])).calls).toEqual([NPM_CI]);
  });

  test("that cannot be installed end the set-up", async () => {
    await machine.addProgram("npm", "exit 7");
    const { code, printed } = await machine.setUp();
    expect(code).toBe(1);
    expect(printed).toContain("`npm ci` failed");
  });
});

describe("a Redis server that is there", () => {
  beforeEach(async () => {
    await machine.setInstalled(LOCKED);
    await machine.addProgram("apt-get");
  });

  test.each(["redis-server", "valkey-server"])(
    "%s on the PATH is enough, and nothing is said",
    async (name) => {
      await machine.addProgram(name);
      expect(await machine.setUp([], { root: true })).toEqual(NOTHING);
    },
  );

  test("HOLDFAST_REDIS_SERVER is enough", async () => {
    const path = await machine.addProgram("some-build");
    expect(await machine.setUp([], { root: true, env: { HOLDFAST_REDIS_SERVER: path } })).toEqual(NOTHING);
  });

  test("HOLDFAST_REDIS_SERVER that cannot be executed is an error, whatever else is there", async () => {
    await machine.addProgram("redis-server");
    const env = { HOLDFAST_REDIS_SERVER: "/nowhere/redis-server", REDIS_URL: "redis://127.0.0.1:1" };
    const { code, printed, calls } = await machine.setUp([], { root: true, env });
    expect({ code, calls }).toEqual({ code: 1, calls: [] });
    expect(printed).toContain("HOLDFAST_REDIS_SERVER is /nowhere/redis-server");
  });

  test("REDIS_URL: nothing is installed, and it is said what tests need", async () => {
    const env = { REDIS_URL: "redis://user:secret@127.0.0.1:1" };
    const { code, printed, calls } = await machine.setUp([], { root: true, env });
    expect({ code, calls }).toEqual({ code: 0, calls: [] });
    expect(printed).toContain("Tests and demo start servers of their own");
    expect(printed).not.toContain("secret");
  });

  test("REDIS_URL beside a server program needs no words", async () => {
    await machine.addProgram("redis-server");
    expect(await machine.setUp([], { env: { REDIS_URL: "redis://127.0.0.1:1" } })).toEqual(NOTHING);
  });
});

describe("no Redis server", () => {
  beforeEach(async () => {
    await machine.setInstalled(LOCKED);
  });

  const installs: [string, string, string[]][] = [
    ["apt-get", "redis-server", ["apt-get update", "apt-get install -y redis-server"]],
    ["dnf", "valkey-server", ["dnf install -y valkey"]],
    ["apk", "valkey-server", ["apk add valkey"]],
  ];

  test.each(installs)("root: %s installs it", async (manager, server, expected) => {
    await machine.addProgram(manager, machine.putting(server));
    const { code, calls } = await machine.setUp([], { root: true });
    expect({ code, calls }).toEqual({ code: 0, calls: expected });
  });

  test.each(installs)(
    "not root: %s is not called, and the message names the command",
    async (manager, _server, expected) => {
      await machine.addProgram(manager);
      await machine.addProgram("sudo");
      const { code, printed, calls } = await machine.setUp();
      expect({ code, calls }).toEqual({ code: 1, calls: [] });
      expect(printed).toContain(`\n    ${expected.map((line) => `sudo ${line}`).join(" && ")}\n`);
    },
  );

  test.each(installs)("not root, --yes: %s is called through sudo", async (manager, server, expected) => {
    await machine.addProgram(manager, machine.putting(server));
    await machine.addProgram("sudo", 'exec "$@"');
    const { code, calls } = await machine.setUp(["--yes"]);
    expect({ code, calls }).toEqual({ code: 0, calls: expected.flatMap((line) => [`sudo ${line}`, line]) });
  });

  test("not root and no sudo: the command is named without it", async () => {
    await machine.addProgram("apk");
    const { code, printed } = await machine.setUp();
    expect(code).toBe(1);
    expect(printed).toContain("as root");
    expect(printed).toContain("\n    apk add valkey\n");
  });

  test("brew asks first", async () => {
    await machine.addProgram("brew");
    const { code, printed, calls } = await machine.setUp();
    expect({ code, calls }).toEqual({ code: 1, calls: [] });
    expect(printed).toContain("\n    brew install valkey\n");
  });

  test("brew with --yes installs without sudo", async () => {
    await machine.addProgram("brew", machine.putting("valkey-server"));
    await machine.addProgram("sudo");
    const { code, calls } = await machine.setUp(["--yes"]);
    expect({ code, calls }).toEqual({ code: 0, calls: ["brew install valkey"] });
  });

  test("a system that does not know valkey gets redis", async () => {
    await machine.addProgram("dnf", `[ "$3" = redis ] || exit 1\n${machine.putting("redis-server")}`);
    const { code, calls } = await machine.setUp([], { root: true });
    expect({ code, calls }).toEqual({ code: 0, calls: ["dnf install -y valkey", "dnf install -y redis"] });
  });

  test("package lists that cannot be refreshed do not hinder", async () => {
    await machine.addProgram("apt-get", `[ "$1" = install ] || exit 100\n${machine.putting("redis-server")}`);
    expect((await machine.setUp([], { root: true })).code).toBe(0);
  });

  test.each([
    ["fails", "exit 100"],
    ["puts no server on the PATH", "exit 0"],
  ])("an installation that %s is an error that names the command", async (_what, script) => {
    await machine.addProgram("apt-get", script);
    const { code, printed } = await machine.setUp([], { root: true });
    expect(code).toBe(1);
    expect(printed).toContain("could not be installed");
    expect(printed).toContain("\n    apt-get update && apt-get install -y redis-server\n");
  });

  test("no package manager either: the message says what is needed", async () => {
    const { code, printed } = await machine.setUp([], { root: true });
    expect(code).toBe(1);
    expect(printed).toContain("Redis >= 6.2 or Valkey");
    expect(printed).toContain("HOLDFAST_REDIS_SERVER=");
  });

  test("--packages does not ask for one", async () => {
    expect(await machine.setUp(["--packages"])).toEqual(NOTHING);
  });
});

test("an unknown flag is refused", async () => {
  const { code, printed, calls } = await machine.setUp(["--yess"]);
  expect({ code, calls }).toEqual({ code: 1, calls: [] });
  expect(printed).toContain("--yess is not one of --packages, --docs, --yes");
});
