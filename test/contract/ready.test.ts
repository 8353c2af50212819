/** `client.ready()`: its questions to the server, and the refusals whose error says what is missing. In virtual time. */
import { describe, expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import {
  failure,
  type Party,
  PLAIN,
  type Ran,
  type RowOptions,
  row,
  type VirtualPlace,
  type VirtualServer,
  watch,
} from "../support/place/index.js";

/** INFO as a proxy tells it: the proxy's own version comes first. */
const info = (version: string) =>
  `# Server\r\nproxy_redis_version:1.0\r\nredis_version:${version}\r\nrun_id:${"0".repeat(40)}\r\n`;

const OPTIONS: RowOptions = { kinds: [PLAIN], client: { commandTimeout: 1_000 } };

function test(title: string, body: (place: VirtualPlace) => unknown): void {
  row(`${title} [§1 ready]`, OPTIONS, body);
}

/** `ready()` rejects with UNSUPPORTED and this text. */
async function expectUnsupported({ client }: Party, text: string | RegExp): Promise<void> {
  const says = typeof text === "string" ? expect.stringContaining(text) : expect.stringMatching(text);
  expect(await failure(client.ready())).toMatchObject({ code: "UNSUPPORTED", lockName: "", message: says });
}

/** Replaces the server's answer to INFO. */
function answering(server: VirtualServer, text: string): void {
  server.instead = ({ name, args }) => (name === "INFO" && args[0] === "server" ? text : undefined);
}

/** Makes the server refuse the commands that `refuses` selects. */
function refusing(server: VirtualServer, refuses: (ran: Ran) => boolean, text: string): void {
  server.instead = (ran) => {
    if (refuses(ran)) throw new ReplyError(text);
    return undefined;
  };
}

test("ready() resolves, and leaves nothing", async ({ a, server }) => {
  expect(await a.client.ready()).toBeUndefined();
  const names = server.ran.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["INFO", "PING", "PUBLISH", "server/refused", "plain/take", "plain/end"]),
  );
});

test("a server from version 6.2 on will do, and one that tells none", async ({ server, party }) => {
  for (const version of ["6.2.0", "6.10.1", "7.0.0", "10.1.0", "255.255.255", undefined]) {
    answering(server, version ? info(version) : "# Server\r\n");
    const { client } = party();
    expect(await client.ready(), version).toBeUndefined();
    await client.close();
  }
});

test("a server before version 6.2 is too old", async ({ server, party }) => {
  for (const version of ["6.1.9", "5.0.14", "2.8.24", "6.0.16"]) {
    answering(server, info(version));
    const minor = version.split(".").slice(0, 2).join(".");
    const each = party();
    await expectUnsupported(each, `the server is Redis ${minor}; use Redis 6.2, or later`);
    expect(server.took()).toEqual([]);
    await each.close();
  }
});

const mayNot = (command: string) => `NOPERM this user has no permissions to run the '${command}' command`;

test("a user who may not ask for the version may use all the rest", async ({ a, server }) => {
  refusing(server, ({ name }) => name === "INFO", mayNot("info"));
  expect(await a.client.ready()).toBeUndefined();
});

test("without an answer ready() is UNAVAILABLE in time", async ({ a, pass }) => {
  a.keep("requests");
  const ready = watch(a.client.ready());
  await pass(999);
  expect(ready.outcome).toBe("pending");
  await pass(1);
  expect(ready.outcome).toBe("UNAVAILABLE");
});

test("a client that is closed while nothing is heard of a channel ends it at once [B71]", async ({
  a,
  pass,
}) => {
  await a.client.ready();
  a.keep("replies", a.connections.at(-1));
  const ready = watch(a.client.ready());
  await pass(0);
  await a.client.close({ timeout: 0 });
  expect(ready.error).toMatchObject({ code: "CLIENT_CLOSED", lockName: "" });
  await a.letGo();
});

const isProbe = ({ name }: Ran) => name === "server/refused";

test("what the server refuses for another reason than a right is told", async ({ a, server }) => {
  const text = "WRONGPASS invalid username-password pair";
  refusing(server, isProbe, text);
  await expectUnsupported(a, text);
});

test("a user who is confined to some names cannot be checked without a prefix, and is not refused", async ({
  a,
  server,
}) => {
  refusing(server, isProbe, "NOPERM No permissions to access a key");
  expect(await a.client.ready()).toBeUndefined();
  expect(server.took()).toEqual([]);
  expect(server.ran.some(({ name }) => name === "PUBLISH")).toBe(false);
});

describe("a server that answers SUBSCRIBE with LOADING", () => {
  const LOADING = "LOADING Redis is loading the dataset in memory";

  test("while a server answers SUBSCRIBE with LOADING, ready() is UNAVAILABLE in time, and says why [B67]", async ({
    a,
    server,
    pass,
  }) => {
    server.subscribe = () => {
      throw new ReplyError(LOADING);
    };
    const ready = watch(a.client.ready());
    await pass(999);
    expect(ready.outcome).toBe("pending");
    await pass(1);
    expect(ready.error).toMatchObject({ code: "UNAVAILABLE", lockName: "", cause: { message: LOADING } });
  });

  test("a server that answers SUBSCRIBE with LOADING once is asked again, and ready() resolves", async ({
    a,
    server,
    pass,
  }) => {
    const subscribe = server.subscribe.bind(server);
    const refused = new Set<string>();
    server.subscribe = (kind, channel, subscriber) => {
      if (refused.has(channel)) return subscribe(kind, channel, subscriber);
      refused.add(channel);
      throw new ReplyError(LOADING);
    };
    const ready = watch(a.client.ready());
    await pass(999);
    expect(ready.outcome).toBeUndefined();
    expect(refused.size).toBeGreaterThan(0);
  });
});

for (const [what, script, lockName] of [
  ["a script that fails", "server/refused", ""],
  ["a lock that cannot be taken", "plain/take", expect.stringMatching(/^holdfast-ready-/) as string],
])
  test(`${what} fails ready() in time`, async ({ a, server, pass }) => {
    refusing(server, ({ name }) => name === script, "ERR something else");
    const ready = watch(a.client.ready());
    await pass(1_000);
    expect(ready.error).toMatchObject({ code: "UNAVAILABLE", lockName });
  });

test("a channel that nothing is heard of fails ready() in time", async ({ a, pass }) => {
  await a.client.ready();
  a.keep("replies", a.connections.at(-1));
  const ready = watch(a.client.ready());
  await pass(1_000);
  expect(ready.error).toMatchObject({ code: "UNAVAILABLE", lockName: "" });
});
