/** Builds the Java side before the first of these tests, and tells the tests what was built. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

/** A Redisson to test with, or the reason why there is none. */
export type Built =
  | { readonly version: string; readonly classpath: string }
  | { readonly version: string; readonly missing: string };

declare module "vitest" {
  export interface ProvidedContext {
    redisson: readonly Built[];
  }
}

const BUILD = fileURLToPath(new URL("../../interop/build.mjs", import.meta.url));

export default async function setup({ provide }: TestProject): Promise<void> {
  provide("redisson", await build());
}

export async function build(): Promise<Built[]> {
  const wanted = process.env.HOLDFAST_REDISSON?.split(",") ?? [];
  const args = wanted.flatMap((version) => ["--redisson", version]);
  const { stdout } = await promisify(execFile)(process.execPath, [BUILD, ...args]);
  return JSON.parse(stdout) as Built[];
}
