/** The checks of what this user may do: whether a lock can be taken, and its message arrives. */
import { monotonic, wallTime } from "../../../base/platform.js";
import { isLockError } from "../../../index.js";
import { within } from "../pause.js";
import { spell } from "../terminal.js";
import { bad, type Finding, good, type Patient } from "./finding.js";

export async function rights({ client, isRefused }: Patient): Promise<Finding> {
  try {
    await client.ready();
    // Without a prefix it looks no further when the user may not use its name.
    if (isRefused) return noteOfConfined();
    return good("this user may do all that locks, semaphores and latches need");
  } catch (error) {
    if (!isLockError(error)) throw error;
    const { code, message: finding } = error;
    if (code === "UNSUPPORTED")
      return bad(finding, "every call that needs it rejects so", "give the user the rights of docs/guide.md");
    const cure = "see why Redis gives no usable answer: its log, memory and replicas, or what stands between";
    return bad(finding, "no lock can be taken", cure);
  }
}

function noteOfConfined(): Finding {
  return {
    level: "note",
    finding: "rights are confined to some names",
    why: "without their prefix it cannot be seen whether a lock can be taken",
    cure: "say --prefix, with that of your services",
  };
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
      why: "who waits is not woken, and only looks every pollCap",
      cure: "look for a proxy between that drops SUBSCRIBE or PUBLISH, or channels that the user may not use",
    };
  } finally {
    ear.disconnect();
  }
}

/** Where releases of the lock of this full name are announced. */
function channelOf(name: string): string {
  return `redisson_lock__channel:${name.includes("{") ? name : `{${name}}`}`;
}
