/** The checks of what this user may do: whether a lock can be taken, and its message arrives. */
import { monotonic, wallTime } from "../../../base/platform.js";
import { isLockError } from "../../../index.js";
import { slotOf } from "../../../redis/slots.js";
import { within } from "../pause.js";
import type { Server } from "../server.js";
import { spell } from "../terminal.js";
import { bad, type Finding, good, type Patient } from "./finding.js";

/** Takes and gives back a lock on each master, because each has its own users and its own memory. */
export async function rights({ client, server, prefix }: Patient): Promise<Finding> {
  const tried = [...namesByMaster(server, prefix)].map(async ([address, name]) => {
    const error: unknown = await client
      .getLock(name)
      .run(() => undefined)
      .catch((reason: unknown) => reason);
    return error === undefined ? [] : [{ error, address }];
  });
  const refusing = (await Promise.all(tried)).flat();
  const [first] = refusing;
  if (first) return refusal(first.error, ` (on ${refusing.map(({ address }) => address).join(", ")})`);
  try {
    await client.ready();
  } catch (error) {
    return refusal(error, "");
  }
  return good("this user may do all that locks, semaphores and latches need");
}

/** @throws what is no error of a lock */
function refusal(error: unknown, where: string): Finding {
  if (!isLockError(error)) throw error;
  const { code, message } = error;
  const finding = `${message}${where}`;
  if (code === "UNSUPPORTED")
    return bad(
      finding,
      "every call that needs it rejects like this",
      "give the user the rights of docs/production.md; if it may use some names only, say --prefix as in your services",
    );
  const cure = "find out why Redis gives no usable answer: its log, memory and replicas, or a proxy";
  return bad(finding, "no lock can be taken", cure);
}

/** The most names that are tried: enough to find one of a master that has a single slot. */
const MOST_NAMES = 200_000;

/**
 * A name for each master of a cluster, in one of its slots; one name for a lone server. The map leaves out a master if no
 * name behind the prefix is there, as behind a prefix with braces. Such a master has none of these locks.
 */
function namesByMaster({ slots, options }: Server, prefix: string): Map<string, string> {
  const nameOf = (n: number) => `holdfast doctor ${wallTime()} ${n}`;
  if (!slots) return new Map([[`${options.host}:${options.port}`, nameOf(0)]]);
  const left = new Set(slots.flatMap((nodes) => nodes?.[0] ?? []));
  const names = new Map<string, string>();
  for (let i = 0; i < MOST_NAMES && left.size > 0; i++) {
    const name = nameOf(i);
    const master = slots[slotOf(prefix ? `${prefix}:${name}` : name)]?.[0];
    if (master !== undefined && left.delete(master)) names.set(master, name);
  }
  return names;
}

/** Milliseconds; short enough that a check which waits so long still says what it has found. */
const SOON = 3_000;

export async function messages({ server, prefix }: Patient): Promise<Finding> {
  const ear = server.duplicate();
  // What fails on it tells it; ioredis would write to the terminal.
  ear.on("error", () => {});
  // Behind the prefix: the user may be confined to channels of such names.
  const channel = channelOf(`${prefix ? `${prefix}:` : ""}holdfast doctor ${wallTime()}`);
  const exchange = async (): Promise<number> => {
    const heard = new Promise<void>((resolve) => ear.on("message", () => resolve()));
    await ear.subscribe(channel);
    const begun = monotonic();
    await server.call("PUBLISH", channel, "0");
    await heard;
    return monotonic() - begun;
  };
  try {
    const took = await within(SOON, exchange());
    if (took !== undefined) return good(`arrive, within ${spell(took)}`);
    return {
      level: "poor",
      finding: `none arrived within ${spell(SOON)}`,
      why: "no message wakes a waiter, which then looks only every pollCap",
      cure: "look for a proxy that drops SUBSCRIBE or PUBLISH, or channels that the user may not use",
    };
  } finally {
    ear.disconnect();
  }
}

/** Where releases of the lock of this full name are announced. */
function channelOf(name: string): string {
  return `redisson_lock__channel:${name.includes("{") ? name : `{${name}}`}`;
}
