/** Calls that must not run after their marker may have expired; the server's clock decides that. */
import { describe, expect, test } from "vitest";
import {
  counterTrySet,
  latchCountDown,
  permitsSet,
  permitsUpdate,
  semaphoreRelease,
} from "../../src/scripts/generated.js";
import { forms, useBench } from "./bench.js";
import { answered, MARKER, MARKER_TTL, marked, NUMBER, PERMIT_CHANNEL } from "./counts.js";

const bench = await useBench();
const LEASES = `{${NUMBER}}:timeout`;
const ID = "0123456789abcdef0123456789abcdef";

const common = { markerTtl: MARKER_TTL, publish: "PUBLISH" };
const permitKeys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER };

const calls = [
  {
    script: counterTrySet,
    keys: { number: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
    args: { ...common, count: 3, message: "3" },
  },
  {
    script: semaphoreRelease,
    keys: { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER },
    args: { ...common, count: 3, message: "" },
  },
  { script: latchCountDown, keys: { count: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER }, args: common },
  { script: permitsSet, keys: permitKeys, args: { ...common, count: 3, call: 1 } },
  { script: permitsUpdate, keys: permitKeys, args: { ...common, id: ID, lease: 1_000, call: 1 } },
] as const;

const named = calls.flatMap((call) =>
  forms(call.script as never).map((form) => ({ name: call.script.name, call, form })),
);

describe.each(named)("$name, $form", ({ call: { script, keys, args }, form }) => {
  const run = (latest: number) =>
    bench.runner(script as never, form)(keys as never, { ...args, latest } as never);

  test("too late, nothing is done or told [B3]", async () => {
    await bench.put({});
    expect(await run(Date.now() - 2_000)).toEqual(answered(-1));
    await bench.expect({});
    expect(await bench.heard()).toEqual([]);
  });

  test("in time it is run", async () => {
    await bench.put({});
    expect(await run(Date.now() + 20_000)).toEqual(answered(script === permitsUpdate ? 0 : 1));
  });

  test("an answer that is remembered is given at any time", async () => {
    await bench.put({ [MARKER]: marked(1) });
    expect(await run(Date.now() - 2_000)).toEqual(answered(1));
    await bench.expect({ [MARKER]: marked(1) });
  });
});
