/** Blocks with deliberate mistakes: the runner notices each, and reports it with its line of the page. */
import { expect, test } from "vitest";
import { forFile } from "../../support/index.js";
import { blocksOf } from "./pages.js";
import { planOf } from "./plans.js";
import { planted as block, GOOD } from "./planted.js";
import { BlockRunner } from "./runner.js";

const runner = await forFile(BlockRunner.start());

test("a program without a fault runs, with its claims", async () => {
  await runner.run(GOOD);
});

test.each([
  ["an error is thrown", 'throw new Error("planted");', "planted"],
  ["nobody supplies a name", "await readCuont();", "readCuont is not defined"],
  ["a value is another", "await lock.isLocked(); // → true", "it gave false, not true"],
  ["a rejection is another", "await lock.unlock(); // rejects LOCK_LOST", "rejected with NOT_OWNER"],
  ["nobody handles a rejection", 'void Promise.reject(new Error("alone"));', "alone"],
  ["a claim is about nothing", "// → true", "stands behind nothing"],
])("a program fails with its line: %s", async (_what, line, message) => {
  const run = runner.run(block("ts", "await work();", line));
  await expect(run).rejects.toThrow(message);
  await expect(run).rejects.toThrow(/^docs\/page\.md:5 /);
});

test("a program that leaves a lock held, and one that does not end, fail", async () => {
  const leaves = runner.run(block("js", "await lock.lock();"));
  await expect(leaves).rejects.toThrow(/^docs\/page\.md:3 .*it leaves locks held: lock$/ms);
  const waits = runner.run(block("js", "await lock.lock();", "await lock.lock();"), 3_000);
  await expect(waits).rejects.toThrow("docs/page.md:3 (block at docs/page.md:3):\nit did not end");
});

test("a language, a shell command and an example that nobody knows, and a fence that is never closed, are refused", () => {
  expect(() => planOf(block("lua"))).toThrow('docs/page.md:3: the tests know no blocks of "lua"');
  expect(() => planOf(block(""))).toThrow('docs/page.md:3: the tests know no blocks of ""');
  expect(() => planOf(block("sh", "npm install holdfast", "rm -rf /"))).toThrow('the command "rm -rf /"');
  expect(() => planOf(block("sh", "node examples/none.mjs"))).toThrow("there is no examples/none.mjs");
  const because = expect.stringContaining("an example");
  expect(planOf(block("sh", "node examples/accounts.mjs # money"))).toEqual({ because });
  const open = { file: "docs/page.md", text: "# Page\n```js\nlock();\n" };
  expect(() => blocksOf(open)).toThrow("docs/page.md:2: a fence");
});
