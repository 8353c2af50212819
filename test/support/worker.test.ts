import { type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
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

  test("a paused worker answers when it is resumed, and dies paused", async () => {
    await using worker = await startWorker(file);
    worker.pause();
    const reply = worker.request("echo", 1);
    const first = await Promise.race([reply, new Promise((resolve) => setImmediate(resolve, "nothing"))]);
    expect(first).toBe("nothing");
    worker.resume();
    expect(await reply).toBe(1);
    worker.pause();
    expect(await worker.kill()).toEqual({ code: null, signal: "SIGKILL" });
  });

  test("requests to a dead worker reject with its stderr", async () => {
    const worker = await startWorker(file);
    const hanging = worker.next("hanging");
    const pending = worker.request("hang");
    pending.catch(() => {});
    await hanging;
    await expect(worker.request("crash")).rejects.toThrow(/ended with code 3\n(.|\n)*crashing now/);
    await expect(pending).rejects.toThrow("crashing now");
    await expect(worker.request("echo")).rejects.toThrow("crashing now");
    await expect(worker.next("step")).rejects.toThrow("ended with code 3");
    expect(await worker.exited).toEqual({ code: 3, signal: null });
    await expect(startWorker(new URL("./missing.mjs", import.meta.url))).rejects.toThrow(
      "Cannot find module",
    );
  });

  test("a worker leaves with its parent", async () => {
    const code = `const { fork } = await import("node:child_process");
      const stdio = ["ignore", "inherit", "ignore", "ipc"];
      const child = fork(${JSON.stringify(fileURLToPath(file))}, { execArgv: [], stdio });
      child.once("message", () => console.log("ready"));`;
    const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
    const parent = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio });
    const bothGone = once(parent, "close"); // "close" comes only when the worker has closed the pipe too
    if (parent.stdout !== null) await once(parent.stdout, "data");
    parent.kill("SIGKILL");
    await bothGone;
  });
});
