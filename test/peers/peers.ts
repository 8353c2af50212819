/** Who is compared: holdfast and the libraries beside which it stands. How each takes a lock is in its adapter. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Built } from "../interop/build.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface PeerInfo {
  /** Of its column, and of its adapter. */
  readonly id: string;
  /** Where package.json of an installed one is. Without: by Maven. */
  readonly packageFolder?: string;
  /** How its waiters learn that a lock is free. */
  readonly waits: "by message" | "by poll";
  /** Whether it renews holds by itself. */
  readonly renews: boolean;
  readonly reentrant?: true;
  /** It has a signal, an event or a callback for a lock that was lost. */
  readonly tells?: true;
  /** It answers by a question to Redis whether a lock is held, not by itself. */
  readonly asksRedis?: true;
  /** A setting of its own that makes a take wait for replicas, and its name. */
  readonly withReplicas?: { readonly options: object; readonly name: string };
}

export interface Peer extends PeerInfo {
  readonly version: string;
  /** Of the driver in Java. */
  readonly driver?: { readonly version: string; readonly classpath: string };
  /** Why it cannot be run here. */
  readonly missing?: string;
}

const inBench = (name: string): string => join("bench/node_modules", name);

/** The columns. */
export const PEERS: readonly PeerInfo[] = [
  {
    id: "holdfast",
    packageFolder: ".",
    waits: "by message",
    renews: true,
    reentrant: true,
    tells: true,
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

/** A peer as it is installed here. `built`: the Java driver for the newest Redisson. */
export function prepared(info: PeerInfo, built: Built | undefined): Peer {
  if (info.packageFolder === undefined) {
    if (built === undefined) return { ...info, version: "", missing: "no Redisson was built" };
    return "missing" in built ? { ...info, ...built } : { ...info, version: built.version, driver: built };
  }
  const file = join(ROOT, info.packageFolder, "package.json");
  if (!existsSync(file)) return { ...info, version: "", missing: `${info.packageFolder} is not installed` };
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { version: string };
  return { ...info, version: version.replace(/^v/, "") };
}
