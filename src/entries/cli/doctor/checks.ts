/** The checks of `holdfast doctor`, one after the other. */
import { monotonic } from "../../../base/platform.js";
import { bad, type Check, type Finding, good, note, type Patient, timeOfPing } from "./finding.js";
import { messages, rights } from "./user.js";

/** Of each master by itself, since one that is set differently is enough to lose a lock. */
const EACH = true;

export const CHECKS: readonly (readonly [what: string, check: Check, ofEach?: boolean])[] = [
  ["version", version, EACH],
  ["rights", rights],
  ["messages", messages],
  ["memory", memory, EACH],
  ["persistence", persistence, EACH],
  ["replicas", replicas, EACH],
  ["cluster", cluster],
  ["latency", latency],
];

const OLDEST = [6, 2] as const;

async function version({ facts }: Patient): Promise<Finding> {
  const valkey = await facts.info("valkey_version");
  const redis = await facts.info("redis_version");
  if (!redis) return note("the server does not tell");
  const name = valkey ? `Valkey ${valkey}` : `Redis ${redis}`;
  const [major = 0, minor = 0] = redis.split(".").map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return good(name);
  return bad(name, "scripts use commands that came with Redis 6.2", "use Redis 6.2 or later, or Valkey");
}

async function memory({ facts }: Patient): Promise<Finding> {
  const [policy = "noeviction", most] = [
    await facts.info("maxmemory_policy"),
    await facts.count("maxmemory"),
  ];
  const evicts = policy !== "noeviction";
  if (!evicts && most > 0) {
    // As Redis counts, by fields of INFO: buffers for replicas and for the append-only file are not what fills it.
    const used = (await facts.count("used_memory")) - (await facts.count("mem_not_counted_for_evict"));
    if (used > most) {
      const finding = `noeviction, ${used} bytes used of ${most}`;
      return bad(
        finding,
        "Redis refuses to write",
        "raise maxmemory, or find out what fills the memory (redis-cli --bigkeys)",
      );
    }
  }
  if (!evicts) return good(most ? `noeviction, of ${most} bytes` : "noeviction, without a limit");
  return {
    level: "poor",
    finding: `${policy}${most ? "" : ", though there is no maxmemory yet"}`,
    why: "when memory runs out, Redis may delete a held lock; its holder learns it at the next renewal",
    cure: "CONFIG SET maxmemory-policy noeviction, or a Redis of its own for locks",
  };
}

/** What a crash forgets, by `appendfsync`. */
const FORGOTTEN: Readonly<Record<string, string>> = {
  everysec: "a crash forgets the last second, and the locks in it",
  no: "a crash of the machine forgets what its system has not yet written, often half a minute, and the locks in it",
  unknown: "unless that is always, a crash forgets locks that were taken just before",
};

async function persistence({ facts }: Patient): Promise<Finding> {
  if ((await facts.info("aof_enabled")) === "1") {
    const fsync = (await facts.setting("appendfsync")) ?? "unknown";
    if (fsync === "always") return good("append-only file, written before each answer");
    return note(`append-only file, appendfsync ${fsync}: ${FORGOTTEN[fsync] ?? FORGOTTEN.unknown}`);
  }
  return {
    level: "note",
    finding: "no append-only file",
    why: "a restart forgets held locks: two may then hold one, until the first learns it at its renewal",
    cure: "CONFIG SET appendonly yes, or fencing tokens where two holders do harm",
  };
}

async function replicas({ facts }: Patient): Promise<Finding> {
  if ((await facts.info("role")) === "slave") {
    return bad(
      "this is a replica",
      "a replica takes no writes, or forgets them",
      "connect to the master, or use --sentinel",
    );
  }
  const [count, least] = [
    await facts.count("connected_slaves"),
    await facts.setting("min-replicas-to-write"),
  ];
  if (Number(least) > (count ?? 0)) {
    const finding = `${count ?? 0}; writes need ${least} of them`;
    return bad(finding, "Redis refuses to write", "bring them back, or lower min-replicas-to-write");
  }
  if (count === 0) return note("none: while this server is away, nobody can lock anything");
  if (least !== undefined && Number(least) > 0) return good(`${count}; writes need ${least} of them`);
  return {
    level: "note",
    finding: `${count}; min-replicas-to-write ${least ?? "unknown"}`,
    why: "a failover may lose a lock that was granted just before, and a master that is cut off goes on granting",
    cure: "the option replicas of LockClient, and min-replicas-to-write 1; fencing tokens where two holders do harm",
  };
}

async function cluster({ facts, server }: Patient): Promise<Finding> {
  if ((await facts.info("cluster_enabled")) !== "1") return good("not one");
  const state = String(await server.call("CLUSTER", "INFO"));
  const [, ok] = /cluster_state:(\w+)/.exec(state) ?? [];
  const [, slots] = /cluster_slots_ok:(\d+)/.exec(state) ?? [];
  if (ok === "ok") return server.isCluster ? good(`${slots} slots served`) : noteOfCluster();
  return bad(
    `cluster_state ${ok}, ${slots} of 16384 slots served`,
    "nobody can take or give back locks of the other slots",
    "redis-cli --cluster check, and --cluster fix",
  );
}

function noteOfCluster(): Finding {
  return {
    level: "poor",
    finding: "this is one node of a cluster",
    why: "it refuses names in other nodes' slots",
    cure: "use --cluster, and new Cluster() of ioredis in your services",
  };
}

const PINGS = 20;
/** Milliseconds after which no further PING is sent: where each takes long, a few say enough. */
const PING_FOR = 3_000;
const SLOW = 100;

async function latency({ server }: Patient): Promise<Finding> {
  const times: number[] = [];
  const end = monotonic() + PING_FOR;
  while (times.length < PINGS && (times.length === 0 || monotonic() < end))
    times.push(await timeOfPing(server));
  times.sort((a, b) => a - b);
  const [median = 0, longest = 0] = [times[Math.floor(times.length / 2)], times.at(-1)];
  const finding = `${median.toFixed(1)} ms, at most ${longest.toFixed(1)} ms, of ${times.length}`;
  if (median < SLOW) return good(finding);
  return {
    level: "poor",
    finding,
    why: "each lock costs a round trip, each unlock another",
    cure: "look at the network, at SLOWLOG, and at the load of the server's one thread",
  };
}
