/** The libraries that are compared with holdfast, and holdfast. Each adapter knows how its library takes a lock. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Built } from "../../test/interop/build.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface PeerInfo {
  /** Name of its column and of its adapter. */
  readonly id: string;
  /** The folder with the package.json of the installed library; absent for a library from Maven. */
  readonly packageFolder?: string;
  /** How its waiters learn that a lock is free. */
  readonly waits: "by message" | "by poll";
  /** Whether it renews holds by itself. */
  readonly renews: boolean;
  readonly reentrant?: true;
  /** It tells of a lost lock by a signal, an event or a callback. */
  readonly tells?: true;
  /** Connected again, it asks at once whether its holds are still there. */
  readonly looksAgain?: true;
  /** To say whether a lock is held, it asks Redis. */
  readonly asksRedis?: true;
  /** Its setting that makes a take wait for replicas, and the name of the setting. */
  readonly withReplicas?: { readonly options: object; readonly name: string };
}

export interface Peer extends PeerInfo {
  readonly version: string;
  /** The Java driver of a library for the JVM. */
  readonly driver?: { readonly version: string; readonly classpath: string };
  /** Why it cannot run here. */
  readonly missing?: string;
}

const inBench = (name: string): string => join("bench/node_modules", name);

/** The columns of the table. */
export const PEERS: readonly PeerInfo[] = [
  {
    id: "holdfast",
    packageFolder: ".",
    waits: "by message",
    renews: true,
    reentrant: true,
    tells: true,
    looksAgain: true,
    withReplicas: { options: { replicas: 1 }, name: "replicas: 1" },
  },
  { id: "redlock4", packageFolder: inBench("redlock4"), waits: "by poll", renews: false },
  { id: "redlock5", packageFolder: inBench("redlock5"), waits: "by poll", renews: true, tells: true },
  {
    id: "redis-semaphore",
    packageFolder: inBench("redis-semaphore"),
    waits: "by poll",
    renews: true,
    tells: true,
  },
  {
    id: "redlock-universal",
    packageFolder: inBench("redlock-universal"),
    waits: "by poll",
    renews: true,
    tells: true,
  },
  { id: "Redisson", waits: "by message", renews: true, reentrant: true, asksRedis: true },
];

/** A peer as installed here. `built`: the Java driver for the newest Redisson. */
export function prepared(info: PeerInfo, built: Built): Peer {
  if (info.packageFolder === undefined)
    return "missing" in built ? { ...info, ...built } : { ...info, version: built.version, driver: built };
  const file = join(ROOT, info.packageFolder, "package.json");
  if (!existsSync(file)) return { ...info, version: "", missing: `${info.packageFolder} is not installed` };
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { version: string };
  return { ...info, version: version.replace(/^v/, "") };
}
