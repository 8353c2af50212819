/** `holdfast doctor`, on healthy servers and on others. */
import { afterAll, expect, test } from "vitest";
import {
  forTest,
  named,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
} from "../../support/index.js";
import { confinedUserArgs } from "../../support/least-privilege.js";
import { useSite } from "./program.js";

const site = await useSite();
const stops: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(stops.map((stop) => stop())));

interface Finding {
  readonly what: string;
  readonly level: string;
  readonly finding: string;
  readonly why?: string;
  readonly cure?: string;
}

async function examine(
  url: string,
  ...args: string[]
): Promise<{ code: number | null; findings: Finding[]; by: Record<string, Finding> }> {
  const { code, out } = await site.main("doctor", "--json", "--url", url, ...args);
  const findings = JSON.parse(out) as Finding[];
  for (const { level, why, cure } of findings) {
    if (level === "poor" || level === "bad") expect([typeof why, typeof cure]).toEqual(["string", "string"]);
  }
  return { code, findings, by: Object.fromEntries(findings.map((finding) => [finding.what, finding])) };
}

test("a server that is well: nothing poor or bad, and nothing is left behind", async () => {
  const { code, by } = await examine(site.server.url);
  expect(code).toBe(0);
  expect(by).toMatchObject({
    version: { level: "good" },
    rights: { level: "good" },
    messages: { level: "good" },
    memory: { level: "good" },
    persistence: { level: "note", finding: "no append-only file" },
    replicas: { level: "note" },
    cluster: { level: "good" },
    latency: { finding: expect.stringMatching(/ ms/) },
    clock: { level: "good" },
    "idle connections": { level: "good" },
    "own keys": { level: "good" },
  });
  const { out } = await site.run("doctor");
  expect(out).toMatch(/^good {2}version: (Redis|Valkey) \d/);
  const keys = (await site.server.call("KEYS", "*")) as string[];
  expect(keys.filter((key) => !key.startsWith("redisson_unlock_latch"))).toEqual([]);
});

test("what loses locks is poor: eviction, a replica, a user without rights, idle connections", async () => {
  const ill = await startRedis({
    args: ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--timeout", "600"],
  });
  stops.push(() => ill.stop());
  expect(await examine(ill.url)).toMatchObject({
    code: 1,
    by: { memory: { level: "poor", finding: "allkeys-lru" }, "idle connections": { level: "note" } },
  });
  await ill.call(
    "CONFIG",
    "SET",
    "maxmemory-policy",
    "noeviction",
    "appendonly",
    "yes",
    "appendfsync",
    "always",
  );
  expect(await examine(ill.url)).toMatchObject({ code: 0, by: { persistence: { level: "good" } } });
  await ill.call("ACL", "SETUSER", "narrow", "on", ">narrow", "~*", "&*", "+@all", "-zadd", "-config");
  const narrow = await examine(`redis://narrow:narrow@127.0.0.1:${ill.port}`);
  expect(narrow).toMatchObject({
    code: 1,
    by: { rights: { level: "bad" }, "idle connections": { level: "note" } },
  });
  expect(narrow.by.rights?.finding).toContain("zadd");

  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(ill.port)] });
  stops.push(() => replica.stop());
  expect(await examine(replica.url)).toMatchObject({ code: 1, by: { replicas: { level: "bad" } } });
});

test.each([
  ["everysec", /the last second/],
  ["no", /has not written yet, often half a minute/],
])("doctor tells what a crash forgets with appendfsync %s [B253]", async (fsync, text) => {
  await using server = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", fsync] });
  const { level, finding } = (await examine(server.url)).by.persistence as Finding;
  expect([level, finding]).toEqual(["note", expect.stringMatching(text)]);
  expect(finding.includes("the last second")).toBe(fsync === "everysec");
  const user = ["SETUSER", "noconfig", "on", ">pw", "~*", "&*", "+@all", "-config"];
  await server.call("ACL", ...user);
  const untold = (await examine(`redis://noconfig:pw@127.0.0.1:${server.port}`)).by.persistence;
  expect(untold).toMatchObject({
    level: "note",
    finding: expect.stringMatching(/unknown: unless that is always/),
  });
});

test.each([
  ["all commands", "app", ["resetchannels", "&app:*", "+@all"]],
  ["all commands but one", "shop", ["resetchannels", "&*", "+@all", "-hset"]],
])(
  "a user with %s for some names is no good one, unless a prefix says which [B208]",
  async (_, prefix, rules) => {
    await site.server.call("ACL", "SETUSER", prefix, "reset", "on", ">pw", `~${prefix}:*`, ...rules);
    const url = `redis://${prefix}:pw@127.0.0.1:${site.server.port}`;
    expect((await site.main("run", "foo", "--url", url, "--", "true")).code).toBe(70);
    expect((await examine(url)).by.rights).toMatchObject({
      level: "note",
      finding: "rights are confined to some names",
      cure: expect.stringContaining("--prefix"),
    });
    expect((await examine(url, "--prefix", prefix)).by.rights).toMatchObject({ level: "bad" });
  },
);

test("the user of the guide hears messages behind its prefix [B209]", async () => {
  const server = await startRedis({ args: confinedUserArgs(false) });
  stops.push(() => server.stop());
  await server.call("ACL", "SETUSER", "shop", "resetchannels", "&redisson_*{shop:*");
  const { by } = await examine(`redis://shop:secret@127.0.0.1:${server.port}`, "--prefix", "shop");
  expect(by).toMatchObject({ rights: { level: "good" }, messages: { level: "good" } });
});

test("a cluster, asked as one and as a lone server", async () => {
  const cluster = await startCluster({ masters: 3 });
  stops.push(() => cluster[Symbol.asyncDispose]());
  const url = cluster.nodes[0]?.url as string;
  expect(await examine(url, "--cluster")).toMatchObject({
    code: 0,
    by: { cluster: { level: "good", finding: "16384 slots served" }, messages: { level: "good" } },
  });
  expect((await examine(url)).by.cluster).toMatchObject({ level: "poor" });
});

test("one master of a cluster that is set differently is found, and named [B139]", async () => {
  const cluster = await startCluster({ masters: 3 });
  stops.push(() => cluster[Symbol.asyncDispose]());
  const [first, odd, last] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
  await odd.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  const { code, findings } = await examine(first.url, "--cluster");
  expect(code).toBe(1);
  const memory = findings.filter(({ what }) => what === "memory");
  expect(memory.map(({ level }) => level).sort()).toEqual(["good", "poor"]);
  const named = (level: string) => memory.find((each) => each.level === level)?.finding;
  expect(named("poor")).toBe(`allkeys-lru, though there is no maxmemory yet (on ${odd.host}:${odd.port})`);
  for (const { host, port } of [first, last]) expect(named("good")).toContain(`${host}:${port}`);
  expect(findings.filter(({ what }) => what === "persistence")).toHaveLength(1);
});

test("the rights of the user are tried on each master of a cluster, and the master that refuses is named [B247]", async () => {
  const cluster = forTest(await startCluster({ masters: 3 }));
  const [first] = cluster.nodes as [RedisServer];
  const may = (node: RedisServer, ...rules: string[]) =>
    node.call("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*app*", "&*", "+@all", ...rules);
  const examined = (...args: string[]) =>
    examine(`redis://app:pw@${first.host}:${first.port}`, "--cluster", ...args);
  await Promise.all(cluster.nodes.map((node) => may(node)));
  expect(await examined("--prefix", "app")).toMatchObject({ code: 0, by: { rights: { level: "good" } } });
  expect((await examined()).by.rights).toMatchObject({ finding: "rights are confined to some names" });
  for (const node of cluster.nodes) {
    await may(node, "-eval", "-evalsha");
    const refused = new RegExp(`eval.*\\(on ${node.host}:${node.port}\\)$`);
    for (const args of [["--prefix", "app"], []]) {
      const { code, findings } = await examined(...args);
      expect(code).toBe(1);
      const told = findings.filter(({ what }) => what === "rights");
      expect(told).toEqual([
        expect.objectContaining({ level: "bad", finding: expect.stringMatching(refused) }),
      ]);
    }
    await may(node);
  }
  // All names of a prefix with braces are in one slot, so only the master of that slot is asked.
  const one = await cluster.masterFor("{app}");
  const [other] = cluster.nodes.filter((node) => node !== one) as [RedisServer];
  await may(other, "-eval", "-evalsha");
  expect((await examined("--prefix", "{app}")).by.rights).toMatchObject({ level: "good" });
});

test("a master of a cluster that has no memory left is bad, and named", async () => {
  const cluster = forTest(await startCluster({ masters: 3 }));
  const [first, full] = cluster.nodes as [RedisServer, RedisServer];
  await full.call("CONFIG", "SET", "maxmemory", "1");
  const { code, findings } = await examine(first.url, "--cluster");
  expect(code).toBe(1);
  const named = new RegExp(`\\(on ${full.host}:${full.port}\\)$`);
  for (const checked of ["memory", "rights"]) {
    const ill = findings.filter(({ what, level }) => what === checked && level === "bad");
    expect(ill).toEqual([expect.objectContaining({ finding: expect.stringMatching(named) })]);
  }
  expect(findings.find(({ what, level }) => what === "memory" && level === "bad")?.finding).toMatch(
    /^noeviction, \d+ bytes used of 1 /,
  );
});

test("a server that refuses to write is bad [B92]", async () => {
  const refusing = await startRedis({ args: ["--min-replicas-to-write", "2"] });
  stops.push(() => refusing.stop());
  expect(await examine(refusing.url)).toMatchObject({
    code: 1,
    by: { rights: { level: "bad" }, replicas: { level: "bad" } },
  });
});

test("a SUBSCRIBE without an answer: no messages, and the rest is looked at [B207]", async () => {
  const proxy = forTest(await startProxy(site.server));
  proxy.delayReplies(600_000, named("subscribe"));
  const { code, by } = await examine(`redis://127.0.0.1:${proxy.port}`);
  expect(code).toBe(1);
  expect(by).toMatchObject({
    rights: { level: "bad", cure: expect.stringContaining("no usable answer") },
    messages: { level: "poor", finding: "none arrived within 3 s" },
    memory: { level: "good" },
    "own keys": { level: "good" },
  });
});

test("a check that gets no answer says so [B207]", async () => {
  const proxy = forTest(await startProxy(site.server));
  proxy.delayReplies(600_000, named("zcard"));
  const { by } = await examine(`redis://127.0.0.1:${proxy.port}`);
  expect(by).toMatchObject({
    rights: { level: "good" },
    "own keys": { level: "note", finding: expect.stringMatching(/^no answer within \d+ s$/) },
  });
});

test("where each answer takes long, latency is poor, and the rights are found out all the same [B248]", async () => {
  const proxy = forTest(await startProxy(site.server));
  proxy.delayReplies(300);
  const { code, by } = await examine(`redis://127.0.0.1:${proxy.port}`);
  expect(code).toBe(1);
  expect(by).toMatchObject({
    rights: { level: "good" },
    latency: { level: "poor" },
    "own keys": { level: "good" },
  });
  // Fewer than the twenty of a near server.
  expect(by.latency?.finding).toMatch(/^\d{3,}\.\d ms, at most \d{3,}\.\d ms, of (\d|10)$/);
});

test("a connection that breaks at SUBSCRIBE is made anew, and nothing else goes to the terminal [B207]", async () => {
  const proxy = forTest(await startProxy(site.server));
  const isProbe = ([name = "", channel = ""]: readonly string[]) =>
    /^subscribe$/i.test(name) && channel.includes("holdfast doctor");
  const dropped = proxy.dropRequest(isProbe);
  const { out, err } = await site.run("doctor", "--url", `redis://127.0.0.1:${proxy.port}`);
  expect(dropped.hits).toBe(1);
  expect(out).toContain("good  messages: arrive");
  expect(err).toBe("");
});
