/** `holdfast doctor`, on healthy servers and on others. */
import { describe, expect, onTestFinished, test } from "vitest";
import {
  forFile,
  forTest,
  type Matcher,
  named,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
} from "../../support/index.js";
import { confinedUserArgs } from "../../support/least-privilege.js";
import { useSite } from "./program.js";

const site = await useSite();

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
  });
  const { out } = await site.run("doctor");
  expect(out).toMatch(/^good {2}version: (Redis|Valkey) \d/);
  const keys = (await site.server.call("KEYS", "*")) as string[];
  expect(keys.filter((key) => !key.startsWith("redisson_unlock_latch"))).toEqual([]);
});

const USUAL = "maxmemory 0 maxmemory-policy noeviction appendonly no min-replicas-to-write 0";

test.each<[settings: string, found: Readonly<Record<string, readonly [level: string, finding: RegExp]>>]>([
  ["maxmemory 100mb", { memory: ["good", /^noeviction, of 104857600 bytes$/] }],
  ["maxmemory 100mb maxmemory-policy allkeys-lru", { memory: ["poor", /^allkeys-lru$/] }],
  ["appendonly yes appendfsync always", { persistence: ["good", /before each answer/] }],
  ["appendonly yes appendfsync everysec", { persistence: ["note", /the last second/] }],
  [
    "appendonly yes appendfsync no",
    { persistence: ["note", /: (?!.*the last second).*has not yet written, often half a minute/] },
  ],
  ["min-replicas-to-write 2", { rights: ["bad", /NOREPLICAS/], replicas: ["bad", /^0; writes need 2/] }],
])("of a server with %s it finds what that means for locks [B92] [B253]", async (settings, found) => {
  const { server } = site;
  const set = (line: string) => server.call("CONFIG", "SET", ...line.split(" "));
  await set(settings);
  onTestFinished(async () => void (await set(USUAL)));
  const { code, by } = await examine(server.url);
  for (const [what, [level, finding]] of Object.entries(found))
    expect([what, by[what]]).toMatchObject([what, { level, finding: expect.stringMatching(finding) }]);
  expect(code).toBe(Object.values(found).some(([level]) => /poor|bad/.test(level)) ? 1 : 0);
});

test("a user without rights is told which it lacks, and what cannot be seen without CONFIG", async () => {
  const { server } = site;
  await server.call("CONFIG", "SET", "appendonly", "yes");
  onTestFinished(async () => void (await server.call("CONFIG", "SET", ...USUAL.split(" "))));
  await server.call("ACL", "SETUSER", "narrow", "on", ">pw", "~*", "&*", "+@all", "-zadd", "-config");
  const { code, by } = await examine(`redis://narrow:pw@127.0.0.1:${server.port}`);
  expect(code).toBe(1);
  expect(by).toMatchObject({
    rights: { level: "bad", finding: expect.stringContaining("zadd") },
    persistence: { level: "note", finding: expect.stringMatching(/unknown: unless that is always/) },
  });
});

test("a replica is bad", async () => {
  await using replica = await startRedis({ args: ["--replicaof", "127.0.0.1", String(site.server.port)] });
  expect(await examine(replica.url)).toMatchObject({ code: 1, by: { replicas: { level: "bad" } } });
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
      level: "bad",
      cure: expect.stringContaining("--prefix"),
    });
    expect((await examine(url, "--prefix", prefix)).by.rights).toMatchObject({ level: "bad" });
  },
);

test("the user of the guide hears messages behind its prefix [B209]", async () => {
  await using server = await startRedis({ args: confinedUserArgs(false) });
  await server.call("ACL", "SETUSER", "shop", "resetchannels", "&redisson_*{shop:*");
  const { by } = await examine(`redis://shop:secret@127.0.0.1:${server.port}`, "--prefix", "shop");
  expect(by).toMatchObject({ rights: { level: "good" }, messages: { level: "good" } });
});

describe("on a cluster", async () => {
  const cluster = await forFile(startCluster({ masters: 3 }));
  const [first, odd, last] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
  const ofCluster = (...args: string[]) => examine(first.url, "--cluster", ...args);
  const on = ({ host, port }: RedisServer) => `${host}:${port}`;

  test("a cluster that is well is good, and asked as a lone server it is poor", async () => {
    expect(await ofCluster()).toMatchObject({
      code: 0,
      by: { cluster: { level: "good", finding: "16384 slots served" }, messages: { level: "good" } },
    });
    expect((await examine(first.url)).by.cluster).toMatchObject({ level: "poor" });
  });

  test("one master that is set differently or has no memory left is found, and named [B139]", async () => {
    const memory = async () => {
      const { code, findings } = await ofCluster();
      const told = findings.filter(({ what }) => what === "memory");
      const by = Object.fromEntries(told.map(({ level, finding }) => [level, finding]));
      return { code, count: told.length, by, findings };
    };
    await odd.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    const { findings, ...evicting } = await memory();
    expect(evicting).toMatchObject({
      code: 1,
      count: 2,
      by: { poor: `allkeys-lru, though there is no maxmemory yet (on ${on(odd)})` },
    });
    for (const node of [first, last]) expect(evicting.by.good).toContain(on(node));
    expect(findings.filter(({ what }) => what === "persistence")).toHaveLength(1);

    await odd.call("CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
    const full = await memory();
    expect([full.code, full.by.bad]).toEqual([1, expect.stringMatching(/^noeviction, \d+ bytes used of 1 /)]);
    const bad = full.findings.filter(({ level }) => level === "bad");
    expect(bad.map(({ what }) => what).sort()).toEqual(["memory", "rights"]);
    for (const { finding } of bad) expect(finding).toMatch(new RegExp(`\\(on ${on(odd)}\\)$`));
    await odd.call("CONFIG", "SET", "maxmemory", "0");
  });

  test("the rights of the user are tried on each master, and the master that refuses is named [B247]", async () => {
    const may = (node: RedisServer, ...rules: string[]) =>
      node.call("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*app*", "&*", "+@all", ...rules);
    const examined = (...args: string[]) => examine(`redis://app:pw@${on(first)}`, "--cluster", ...args);
    await Promise.all(cluster.nodes.map((node) => may(node)));
    expect(await examined("--prefix", "app")).toMatchObject({ code: 0, by: { rights: { level: "good" } } });
    expect((await examined()).by.rights).toMatchObject({
      level: "bad",
      cure: expect.stringContaining("--prefix"),
    });
    for (const node of cluster.nodes) {
      await may(node, "-eval", "-evalsha");
      const { code, findings } = await examined("--prefix", "app");
      expect(code).toBe(1);
      expect(findings.filter(({ what }) => what === "rights")).toEqual([
        expect.objectContaining({
          level: "bad",
          finding: expect.stringMatching(new RegExp(`eval.*\\(on ${on(node)}\\)$`)),
        }),
      ]);
      await may(node);
    }
    // All names of a prefix with braces are in one slot, so only the master of that slot is asked.
    const one = await cluster.masterFor("{app}");
    const [other] = cluster.nodes.filter((node) => node !== one) as [RedisServer];
    await may(other, "-eval", "-evalsha");
    expect((await examined("--prefix", "{app}")).by.rights).toMatchObject({ level: "good" });
  });
});

test("where answers are late or missing, doctor tells what it cannot find out and looks at the rest [B207] [B248]", async () => {
  const behind = async (delay: number, ...matcher: [Matcher?]) => {
    const proxy = forTest(await startProxy(site.server));
    proxy.delayReplies(delay, ...matcher);
    return examine(`redis://127.0.0.1:${proxy.port}`);
  };
  const [noSubscribe, noConfig, slow] = await Promise.all([
    behind(600_000, named("subscribe")),
    behind(600_000, named("config")),
    behind(300),
  ]);
  expect(noSubscribe).toMatchObject({
    code: 1,
    by: {
      rights: { level: "bad", cure: expect.stringContaining("no usable answer") },
      messages: { level: "poor", finding: "none arrived within 3 s" },
      memory: { level: "good" },
      latency: { level: "good" },
    },
  });
  expect(noConfig.by).toMatchObject({
    replicas: { level: "note", finding: expect.stringMatching(/^no answer within \d+ s$/) },
    memory: { level: "good" },
    cluster: { level: "good" },
  });
  // Fewer than the twenty of a near server.
  const finding = expect.stringMatching(/^\d{3,}\.\d ms, at most \d{3,}\.\d ms, of (\d|10)$/);
  expect(slow).toMatchObject({
    code: 1,
    by: { rights: { level: "good" }, latency: { level: "poor", finding } },
  });
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
