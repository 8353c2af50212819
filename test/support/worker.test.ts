import { describe, expect, test } from "vitest";
import { startWorker } from "./index.js";

describe("startWorker", () => {
  const file = new URL("./echo-worker.mjs", import.meta.url);

  test("requests, messages and failures", async () => {
    await using worker = await startWorker(file, { args: ["one"], env: { FROM_TEST: "set" } });
    const value = { big: 12n, map: new Map([["k", [1, 2]]]) };
    expect(await worker.request("echo", value)).toEqual(value);
    expect(await worker.request("environment")).toEqual({ args: ["one"], value: "set" });
    const steps: unknown[] = [];
    worker.on(({ type, payload }) => steps.push([type, payload]));
    const first = worker.next("step");
    expect(await worker.request("count", 3)).toBe(3);
    expect(await first).toBe(1);
    expect(steps).toEqual([
      ["step", 1],
      ["step", 2],
      ["step", 3],
    ]); // prettier-ignore
    await expect(worker.request("fail")).rejects.toMatchObject({
      name: "RangeError",
      message: "out of range",
      code: "E_RANGE",
    });
    await expect(worker.request("nothing")).rejects.toThrow('no handler "nothing"');
    await expect(worker.request("uncloneable")).rejects.toThrow("could not be cloned");
  });
});
