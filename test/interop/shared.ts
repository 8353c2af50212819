/** Starts a JVM for each Redisson before the first of these tests, because a start costs seconds of CPU, and tells its port. */
import type { TestProject } from "vitest/node";
import { type Built, build } from "./build.js";
import { Jvm } from "./jvm.js";

/** A Redisson in a JVM that all files share, or the reason why there is none. */
export type Running =
  | (Extract<Built, { classpath: string }> & { readonly port: number })
  | Extract<Built, { missing: string }>;

declare module "vitest" {
  export interface ProvidedContext {
    sharedRedisson: readonly Running[];
  }
}

export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const jvms: Jvm[] = [];
  const start = async (built: Built): Promise<Running> => {
    if ("missing" in built) return built;
    const jvm = new Jvm(built);
    jvms.push(jvm);
    jvm.ref(); // nothing else does that before Vitest has its workers
    const port = await jvm.call<number>({ op: "listen" });
    return { ...built, port };
  };
  provide("sharedRedisson", await Promise.all((await build()).map(start)));
  return async () => {
    await Promise.all(jvms.map((jvm) => jvm.kill()));
  };
}
