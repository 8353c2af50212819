/** Resources that end with their test file or test. The last one opened ends first. */
import { afterAll, onTestFinished } from "vitest";
import { LockClient } from "../../src/index.js";

type Opened = AsyncDisposable | { disconnect(): unknown };

async function end(opened: Opened): Promise<void> {
  if (opened instanceof LockClient) await opened.close({ timeout: 0 });
  else if (Symbol.asyncDispose in opened) await opened[Symbol.asyncDispose]();
  else opened.disconnect();
}

/** `const server = await forFile(startRedis())` at the top of a file, outside of any `describe`: ends after its last test. */
export async function forFile<T extends Opened>(opening: T | Promise<T>): Promise<T> {
  const opened = await opening;
  afterAll(() => end(opened));
  return opened;
}

/** `forTest(new LockClient(redis))` in a test, in a function it calls, or in a `beforeEach`: ends after this test. */
export function forTest<T extends Opened>(opened: T): T {
  onTestFinished(() => end(opened));
  return opened;
}

/** The warnings of this process from here on. No other test file runs in it at the same time. */
export function recordWarnings(): (Error & { code?: string })[] {
  const warnings: Error[] = [];
  process.on("warning", (warning) => warnings.push(warning));
  return warnings;
}
