// Fetches the oldest Redis that the library supports, for the contract suite to run on. `npm run test:all` calls this
// first; it takes a few milliseconds when the server is there already. Without it the reason is printed and kept, and the
// suite counts as skipped for it.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Absent, fetchServer, folderOf } from "./fetch-server.mjs";

const FLOOR = "redis-6.2";
const REASON = join(folderOf(FLOOR), "absent.txt");

try {
  fetchServer(FLOOR);
  rmSync(REASON, { force: true });
} catch (error) {
  if (!(error instanceof Absent)) throw error;
  const reason = `no Redis 6.2 to run on: ${error.message}`;
  writeFileSync(REASON, reason);
  console.error(`setup: ${reason}`);
}
