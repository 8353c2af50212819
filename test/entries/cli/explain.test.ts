/** `holdfast explain`: each error's text refers to a section of the guide, which a user has at hand by this command. */
import { expect, test } from "vitest";
import type { LockErrorCode } from "../../../src/index.js";
import { useSite } from "./program.js";

const site = await useSite();
/** All that there are: the compiler sees to that. */
const CODES: Record<LockErrorCode, true> = {
  WAIT_TIMEOUT: true,
  NOT_OWNER: true,
  LOCK_LOST: true,
  UPGRADE_REFUSED: true,
  QUORUM: true,
  REPLICAS: true,
  UNAVAILABLE: true,
  CLIENT_CLOSED: true,
  UNSUPPORTED: true,
  WRONG_DATA: true,
};

test.each(Object.keys(CODES))("%s is explained, in any case", async (code) => {
  const { code: exit, out } = await site.run("explain", code.toLowerCase());
  expect([exit, out.split("\n")[0]]).toEqual([0, code]);
  expect(out).toMatch(/_Cure/);
});

test("what is no code is told with those that there are", async () => {
  const told = expect.stringMatching(/"nix".*WAIT_TIMEOUT/);
  expect(await site.run("explain", "nix")).toMatchObject({ code: 64, err: told });
});
