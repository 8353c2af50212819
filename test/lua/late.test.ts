/** Calls that must not run after their marker may have expired; the server's clock decides that. */
import { expect, test } from "vitest";
import { counterTrySet, latchCountDown, semaphoreRelease } from "../../src/scripts/generated.js";
import { useBench } from "./bench.js";
import { answered, MARKER, MARKER_TTL, marked, NUMBER, PERMIT_CHANNEL } from "./counts.js";

const bench = await useBench();

const keys = {
  number: NUMBER,
  count: NUMBER,
  permits: NUMBER,
  channel: PERMIT_CHANNEL,
  marker: MARKER,
};
const args = {
  markerTtl: MARKER_TTL,
  publish: "PUBLISH",
  count: 3,
  message: "3",
};
const calls = [counterTrySet, semaphoreRelease, latchCountDown] as const;

test.each(calls.map((script) => [script.name, script] as const))(
  "%s runs in time only, and a copy gets the remembered answer at any time [B3]",
  async (_, script) => {
    const run = (latest: number) =>
      bench.runner(script as never)(keys as never, { ...args, latest } as never);
    await bench.put({});
    expect(await run(Date.now() - 2_000)).toEqual(answered(-1));
    await bench.expect({});
    expect(await bench.heard()).toEqual([]);
    expect(await run(Date.now() + 20_000)).toEqual(answered(1));
    await bench.put({ [MARKER]: marked(1) });
    expect(await run(Date.now() - 2_000)).toEqual(answered(1));
    await bench.expect({ [MARKER]: marked(1) });
  },
);
