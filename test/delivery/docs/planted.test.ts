/** Blocks with deliberate mistakes: the runner notices each, and reports it with its line of the page. */
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/index.js";
import { type Block, blocksOf } from "./pages.js";
import { planOf } from "./plans.js";
import { planted as block, GOOD } from "./planted.js";
import { BlockRunner } from "./runner.js";

const runner = await forFile(BlockRunner.start());

async function failureOf(planted: Block, timeout?: number): Promise<string> {
  const outcome = planOf(planted) === "run" ? runner.run(planted, timeout) : runner.send(planted);
  return outcome.then(
    () => "none",
    (error: Error) => error.message,
  );
}

describe("programs", () => {
  test("one without a fault runs, with its claims", async () => {
    expect(await failureOf(GOOD)).toBe("none");
  });

  test.each([
    ["an error is thrown", "await work();", 'throw new Error("planted");', "planted"],
    ["a method that is not there", "await work();", "await lock.lokc();", "lokc is not a function"],
    ["a name that nobody supplies", "await work();", "await readCuont();", "readCuont is not defined"],
    ["no program at all", "await work();", "const = 1;", 'Expected identifier but found "="'],
    [
      "a value that is another",
      "await work();",
      "await lock.isLocked(); // → true",
      "it gave false, not true",
    ],
    ["another class", "await work();", "lock; // → Hold", "not Hold"],
    ["a rejection that does not come", "", "await lock.isLocked(); // rejects NOT_OWNER", "it gave false"],
    ["another rejection", "", "await lock.unlock(); // rejects LOCK_LOST", "rejected with NOT_OWNER"],
    ["an unhandled rejection", "", 'void Promise.reject(new Error("alone"));', "alone"],
    ["a claim about nothing", "", "// → true", "stands behind nothing"],
  ])("%s", async (_what, first, second, message) => {
    const failure = await failureOf(block("ts", first, second));
    expect(failure).toContain(message);
    expect(failure).toMatch(/^docs\/page\.md:5 /);
  });

  test("a lock that is not given back", async () => {
    const failure = await failureOf(block("js", "await lock.lock();"));
    expect(failure).toMatch(/^docs\/page\.md:3 .*it leaves locks held: lock$/ms);
  });

  test("one that does not end", async () => {
    const failure = await failureOf(block("js", "await lock.lock();", "await lock.lock();"), 3_000);
    expect(failure).toContain("docs/page.md:3 (block at docs/page.md:3):\nit did not end");
  });
});

describe("blocks that are no programs", () => {
  test("a command that the server does not know, a setting it has not", async () => {
    expect(await failureOf(block("redis", "# first", "PING", "ACL SETUSER a", "    +hgte"))).toMatch(
      /^docs\/page\.md:6: .*Unknown command/,
    );
    expect(await failureOf(block("conf", "appendonly yes", "appendfsnyc always"))).toMatch(
      /^docs\/page\.md:5: /,
    );
  });

  test("a language, a shell command, an example that nobody knows", () => {
    expect(() => planOf(block("lua"))).toThrow('docs/page.md:3: the tests know no blocks of "lua"');
    expect(() => planOf(block(""))).toThrow('docs/page.md:3: the tests know no blocks of ""');
    expect(() => planOf(block("sh", "npm install holdfast", "rm -rf /"))).toThrow('the command "rm -rf /"');
    expect(() => planOf(block("sh", "node examples/none.mjs"))).toThrow("there is no examples/none.mjs");
    expect(planOf(block("sh", "node examples/accounts.mjs # money"))).toEqual({
      because: expect.stringContaining("an example"),
    });
  });

  test("a fence that is never closed", () => {
    expect(() => blocksOf({ file: "docs/page.md", text: "# Page\n```js\nlock();\n" })).toThrow(
      "docs/page.md:2: a fence",
    );
  });
});
