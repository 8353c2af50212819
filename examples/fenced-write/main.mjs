// A holder that is paused for longer than its lease writes when it wakes up, and does not know better. Three ways to
// write one row of a SQL table from several processes, and what each makes of that late write:
//
//   lock alone       the late write overwrites the work of the next holder
//   lock and fence   the table remembers the highest fencing token it has seen, and refuses a lower one
//   version column   no lock: whoever comes second is refused, reads again and tries again (optimistic locking)
//
//   node examples/fenced-write/main.mjs
//
// The processes are real, and the pause is a SIGSTOP. The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killAll } from "../children.mjs";
import { startServer } from "../server.mjs";
import { Database } from "./database.mjs";
import { Writer } from "./writer.mjs";

const directory = mkdtempSync(join(tmpdir(), "holdfast-fenced-write-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));

const server = await startServer(directory);
const database = await Database.open();
const ada = new Writer("Ada", server.port, database);
const ben = new Writer("Ben", server.port, database);

/** Ada is about to write when her process stops; Ben does his work meanwhile. Resolves with the rows that each changed. */
async function lateWrite(way) {
  await ada.prepare(way);
  ada.pause();
  await ben.prepare(way);
  const bens = await ben.write();
  ada.resume();
  const adas = await ada.write();
  return { bens, adas, row: database.row(way) };
}

const alone = await lateWrite("alone");
console.log("lock alone:     ", alone);
assert.deepEqual([alone.bens, alone.adas], [1, 1]);
assert.equal(alone.row.text, "Ada's text", "the work of Ben is lost, and nobody noticed");

const fenced = await lateWrite("fenced");
console.log("lock and fence: ", fenced);
assert.deepEqual([fenced.bens, fenced.adas], [1, 0]);
assert.equal(fenced.row.text, "Ben's text");

const versioned = await lateWrite("versioned");
console.log("version column: ", versioned);
assert.deepEqual([versioned.bens, versioned.adas], [1, 0]);
assert.equal(versioned.row.text, "Ben's text");
// Nothing waits here: who was refused reads what is there now and tries again.
await ada.prepare("versioned");
assert.equal(await ada.write(), 1);
assert.deepEqual(database.row("versioned"), { text: "Ada's text", fence: 0, version: 2 });

console.log("\nThe fence and the version column refused the late write; the lock alone could not.");
await killAll();
