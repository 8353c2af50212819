/** Processes of either side that take and await what they are told, and are killed. */

import { bundledWorker } from "../../faults/build-worker.js";
import { startWorker } from "../../support/index.js";
import type { JavaThread } from "../java.js";
import type { Side } from "../party.js";
import type { Scene } from "../scene.js";
import type { Contest } from "./contests.js";

export interface Terms {
  /** Milliseconds that the holds of a dead process last. */
  readonly watchdogTimeout: number;
  readonly fairWaitTimeout?: number;
  readonly pollCap?: number;
}

export interface Mortal {
  shut(contest: Contest, name: string): Promise<unknown>;
  /** Resolves when the call waits. */
  waits(contest: Contest, name: string): Promise<unknown>;
  kill(): Promise<unknown>;
}

/** Call it outside of tests, because the worker is bundled before them. */
export function mortals(): (scene: Scene, side: Side, terms: Terms) => Promise<Mortal> {
  const bundle = bundledWorker("../interop/cases/party-worker.ts");
  return (scene, side, terms) =>
    side === "Java" ? aJvm(scene, terms) : aNodeProcess(scene, bundle(), terms);
}

async function aJvm(scene: Scene, { watchdogTimeout: watchdog, fairWaitTimeout }: Terms): Promise<Mortal> {
  const jvm = scene.newJvm();
  const fairWait = fairWaitTimeout === undefined ? {} : { fairWait: fairWaitTimeout };
  const java = await scene.newJava({ watchdog, ...fairWait }, jvm);
  const thread = (): Promise<JavaThread> => scene.thread(java);
  return {
    // Java's permits without a lease never end.
    shut: async (contest, name) =>
      contest.shut(await thread(), name, contest.kind === "permits" ? watchdog : undefined),
    waits: async (contest, name) => {
      const party = await thread();
      await party.parked(() => contest.waits(party, name));
    },
    kill: () => jvm.kill(),
  };
}

async function aNodeProcess(scene: Scene, file: string, options: Terms): Promise<Mortal> {
  const worker = await startWorker(file);
  await worker.request("start", { port: scene.server.port, options });
  return {
    shut: ({ kind }, name) => worker.request("shut", { kind, name }),
    waits: ({ kind }, name) => worker.request("waits", { kind, name }),
    kill: () => worker.kill(),
  };
}
