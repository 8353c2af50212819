/** The kinds of locks, each checked on a server of the test file. */
import { forFile, startRedis } from "../support/index.js";
import { checkKind } from "./check.js";
import { kinds } from "./kinds.js";
import type { Checkable } from "./suites.js";

/** Things that must happen among the histories of a suite; without them the histories prove little. */
const USUAL = [
  "granted",
  "nested",
  "waited",
  "null",
  "aborted",
  "WAIT_TIMEOUT",
  "NOT_OWNER",
  "LOCK_LOST",
  "renewed",
  "lost, expired",
  "lost, forced",
];

export async function checkableLocks(): Promise<Checkable[]> {
  const server = await forFile(startRedis());
  return kinds.map((kind) => ({
    name: kind.name,
    usual: kind.rules.sides.length > 1 ? [...USUAL, "UPGRADE_REFUSED"] : USUAL,
    seldom: ["CLIENT_CLOSED", "lost, closed"],
    check: ({ db, ...options }) => checkKind({ kind, connect: () => server.connect({ db }), ...options }),
  }));
}
