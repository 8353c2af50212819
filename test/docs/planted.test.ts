/** Blocks with deliberate mistakes: the runner notices each, and reports it with its line of the page. */
import { describe, expect, test } from "vitest";
import { forFile } from "../support/index.js";
import { type Block, blocksOf } from "./pages.js";
import { planOf } from "./plans.js";
import { BlockRunner } from "./runner.js";
import { typeErrors } from "./types.js";

/** Milliseconds: long, because the library is compiled too, and other files compile at the same time. */
const COMPILING = 180_000;

const runner = await forFile(BlockRunner.start());

/** The block of a page whose fence is on line 3. */
function block(language: string, ...code: string[]): Block {
  const text = ["# Page", "", `\`\`\`${language}`, ...code, "```", ""].join("\n");
  const [only] = blocksOf({ file: "docs/page.md", text });
  if (!only) throw new Error("no block");
  return only;
}

async function failureOf(planted: Block, timeout?: number): Promise<string> {
  const outcome = planOf(planted) === "run" ? runner.run(planted, timeout) : runner.send(planted);
  return outcome.then(
    () => "none",
    (error: Error) => error.message,
  );
}

describe("programs", () => {
  test(
    "one without a fault runs, with its claims",
    async () => {
      const good = block(
        "ts",
        'import { LockClient } from "holdfast";',
        'import { Redis } from "ioredis";',
        "const client = new LockClient(new Redis());",
        '{ await using hold = await client.getLock("a").lock(); // given back here',
        "  hold.isHeld; // → true",
        "}",
        'const held = await client.getLock("a").isLocked(); // → false',
        "held;",
        "await lock.unlock(); // rejects NOT_OWNER",
        "lock; // → Lock (a class)",
        "await lock.tryLock().then((hold) => hold?.unlock()); // → undefined or null",
      );
      expect(await failureOf(good)).toBe("none");
      expect(typeErrors([good])).toEqual([]);
    },
    COMPILING,
  );

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

  test(
    "types: a method, an option, and a name that are not there",
    () => {
      const planted = block(
        "ts",
        "await lock.lokc();",
        "await lock.lock({ lase: 1_000 });",
        "await readCuont();",
      );
      expect(typeErrors([planted])).toEqual([
        expect.stringMatching(/^docs\/page\.md:4: Property 'lokc' does not exist/),
        expect.stringMatching(/^docs\/page\.md:5: .*'lase' does not exist/),
        expect.stringMatching(/^docs\/page\.md:6: Cannot find name 'readCuont'/),
      ]);
    },
    COMPILING,
  );
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
