import { expect, test } from "vitest";
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
