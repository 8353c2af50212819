import { expect, test } from "vitest";
import { RedisUnavailableError, UnsupportedServerError, WrongDataError } from "../../src/base/errors.js";
import type { CommandRunner } from "../../src/redis/command-runner.js";
import { lockRenew } from "../../src/scripts/generated.js";
import { ScriptRenewer } from "../../src/watchdog/script-renewer.js";
import type { Renewal } from "../../src/watchdog/watchdog.js";

test.each([
  ["no longer than any command", 3_000, 30_000, 3_000],
  ["in time for another try within the lease", 3_000, 6_000, 2_000],
])("a batch is one command, %s", async (_, commandTimeout, lease, within) => {
  const sent: unknown[] = [];
  const runner = {
    commandTimeout,
    call: (call: unknown, read: (reply: unknown) => unknown) => {
      sent.push(call);
      return Promise.resolve(read(["1", 0, "-1"]));
    },
  };
  const renewals = ["a", "b", "c"].map((key) => ({ key, watched: {} })) as unknown as Renewal<unknown>[];
  const renewer = new ScriptRenewer(runner as unknown as CommandRunner, lease, lockRenew, (batch, ms) => ({
    keys: { locks: batch.map(({ key }) => key) },
    args: { lease: ms, owners: batch.map(({ key }) => `owner of ${key}`) },
  }));
  const late: unknown[] = [];
  expect(await renewer.renew(renewals, (words) => late.push(words))).toEqual([1, 0, -1]);
  expect(sent).toEqual([
    {
      lockName: "",
      script: lockRenew,
      keys: { locks: ["a", "b", "c"] },
      args: { lease, owners: ["owner of a", "owner of b", "owner of c"] },
      within,
      vital: true,
      late: expect.any(Function),
    },
  ]);
  const [{ late: hear }] = sent as [{ late: (reply: unknown) => void }];
  for (const reply of ["junk", null, ["1", 0, "-1"]]) hear(reply);
  expect(late).toEqual([[1, 0, -1]]);
});

test.each([
  ["a key that its user may not use", new UnsupportedServerError("", "forbidden"), true],
  ["a key with other data", new WrongDataError("", new Error("WRONGTYPE")), true],
  ["a slot that moves", new RedisUnavailableError("", new Error("TRYAGAIN Multiple keys request")), true],
  ["a server that is silent", new RedisUnavailableError("", new Error("gave no answer")), false],
  ["a mistake", new TypeError("wrong"), false],
])("a failure may be one key's alone: %s", (_, error, isOfOne) => {
  const renewer = new ScriptRenewer({} as CommandRunner, 30_000, lockRenew, () => ({
    keys: { locks: [] },
    args: { lease: 30_000, owners: [] },
  }));
  expect(renewer.isOfOne(error)).toBe(isOfOne);
});
