/** Replaces the contract suite where there is no Redis 6.2, so that the run reports what it has left out. */
import { existsSync, readFileSync } from "node:fs";
import { test } from "vitest";

const REASON = new URL("../../node_modules/.cache/holdfast-redis-6.2/absent.txt", import.meta.url);

test("the contract suite on Redis 6.2", ({ skip }) => {
  skip(
    existsSync(REASON)
      ? readFileSync(REASON, "utf8")
      : "Redis 6.2 has not been fetched; npm run test:all does",
  );
});
