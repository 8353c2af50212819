/** What a client writes about itself: the format, its writer and its reader. The reader trusts no field. */
import type { LockKind } from "../base/events.js";

/** A process, as people know it. */
export interface ClientInfo {
  /** The first part of its owner ids. */
  readonly id: string;
  /** Its option `label`. */
  readonly label: string;
  /** The name of its machine. */
  readonly host: string;
  /** Its process id on that machine. */
  readonly pid: number;
}

/** A hold or permit that a client has, or something that it waits for. */
export interface Told {
  readonly key: string;
  readonly kind: LockKind;
  readonly ownerId: string | undefined;
  /** Epoch milliseconds by the client's clock. */
  readonly since: number;
  /** Of a wait for a read-write lock: the side. */
  readonly mode?: "read" | "write" | undefined;
  /** Of a wait: the keys that its owner, and the owners of the runs around it, hold meanwhile. */
  readonly holds?: readonly string[];
}

/** What a client has and waits for. */
export interface ClientState {
  readonly holds: readonly Told[];
  readonly waits: readonly Told[];
}

export interface ClientTold extends ClientState {
  readonly client: ClientInfo;
}

/** The most holds and waits together that a client writes. */
export const MOST = 1_000;

/** The latest epoch milliseconds that a Date can have. */
const LATEST = 8.64e15;

/** The fields of a client's key. */
export function write({ client, holds, waits }: ClientTold, since: number): Record<string, string> {
  const { label, host, pid } = client;
  const list = (told: readonly Told[]) =>
    JSON.stringify(
      told.map(({ key, kind, ownerId, since: from, mode, holds: held }) => {
        const more = held ? [mode ?? 0, ...held] : [];
        return [key, kind, ownerId ?? 0, from, ...more];
      }),
    );
  const shown = holds.slice(0, MOST);
  return {
    label,
    host,
    pid: String(pid),
    since: String(since),
    holds: list(shown),
    waits: list(waits.slice(0, MOST - shown.length)),
  };
}

/** The fields of a key that anybody may have written. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reads the fields of a client's key; undefined if no client of this library has written them. */
export function read(id: string, { label, host, pid, holds, waits }: Fields): ClientTold | undefined {
  if (typeof label !== "string" || typeof host !== "string") return undefined;
  return { client: { id, label, host, pid: Number(pid) }, holds: readList(holds), waits: readList(waits) };
}

function readList(text: unknown): Told[] {
  let list: unknown;
  try {
    list = JSON.parse(String(text));
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list.slice(0, MOST).flatMap((item: unknown) => {
    if (!Array.isArray(item)) return [];
    const [key, kind, ownerId, since, mode, ...holds] = item as unknown[];
    if (typeof key !== "string" || typeof kind !== "string" || typeof since !== "number") return [];
    if (Math.abs(since) > LATEST) return [];
    return [
      {
        key,
        kind: kind as LockKind,
        ownerId: typeof ownerId === "string" ? ownerId : undefined,
        since,
        mode: mode === "read" || mode === "write" ? mode : undefined,
        holds: holds.filter((held) => typeof held === "string"),
      },
    ];
  });
}
