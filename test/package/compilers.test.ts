/** The types as the compilers of users see them, the oldest that works to the newest. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { PATIENCE } from "../support/patience.js";
import { type Consumer, PackedPackage } from "./consumer.js";
import * as programs from "./programs.js";
import { installVersions, versionFolder } from "./versions/install.js";

const FILES = ["typed.mts", "narrowed.mts", "narrowed.cts"];

let packed: PackedPackage;
let project: Consumer;
let missing: string | undefined;

beforeAll(async () => {
  [packed, missing] = await Promise.all([PackedPackage.create(), installVersions()]);
  project = await packed.install("ioredis", "ioredis5", "@types/node");
  await project.write("tsconfig.json", programs.typedProject("node16", FILES));
  await project.write("typed.mts", programs.TYPED);
  await project.write("narrowed.mts", programs.NARROWED);
  await project.write("narrowed.cts", programs.NARROWED);
}, 300_000);

afterAll(async () => {
  await packed?.remove();
});

test.for(["typescript5.2", "typescript5.9", "typescript6", "typescript7"])(
  "%s compiles what users write, and narrows an error by isLockError, by its code and by its class",
  { timeout: 15 * PATIENCE },
  async (compiler, { skip }) => {
    if (missing) skip(missing);
    expect(await project.tsc(versionFolder(compiler))).toBe("");
  },
);
