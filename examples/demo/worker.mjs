// One clerk: a process of its own, with a LockClient of its own. It does what the demo asks for (tasks.mjs) and tells
// the demo what happens to its lock, by the client's events.
import { LockClient } from "holdfast";
import { AccountBook } from "./account-book.mjs";
import { now } from "./clock.mjs";
import * as allTasks from "./tasks.mjs";

const [port, lease, bookPath] = process.argv.slice(2);

const tasks = { ...allTasks };
const client = LockClient.connect(
  { host: "127.0.0.1", port: Number(port) },
  { watchdogTimeout: Number(lease) },
);
const lock = client.getLock("account-book");
const book = new AccountBook(bookPath);

function send(message) {
  if (process.connected) process.send(message);
}

function note(event) {
  send({ event, at: now() });
}

for (const event of ["waiting", "acquired", "renewed", "released", "lost"])
  client.on(event, () => note(event));

process.on("message", async ({ id, task, args }) => {
  try {
    send({ id, result: await tasks[task]({ client, lock, book, note, ...args }) });
  } catch (error) {
    send({ id, error: error.message });
  }
});

// Ctrl-C in a terminal reaches every process of the demo. The parent decides when a clerk goes: by ending the channel.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit());
