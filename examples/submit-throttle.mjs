// Form submit throttle: who submits a form may do so again some five seconds later, so a double click counts once, whichever
// server gets the second click. It is one line: `tryLock(0, 5_000)`, on a lock whose name says who submits what. Nobody
// unlocks: the hold is left to lapse.
//
//   node examples/submit-throttle.mjs
//
// What to know about a hold that is left to lapse:
//
//  - At its deadline, which is a hundredth before the lease ends (the client's option `drift`), the client gives back what
//    is left and emits `lost` with the reason `expired`, as for every hold that was not unlocked in time. Here that is the
//    plan. Tell it apart by the lock's name (see `reportLosses`), lest the alarm rings for each form.
//  - `client.close({ timeout })` waits up to `timeout` for live holds to end, and gives back what is left then: the throttle
//    is lifted early. Close with a timeout longer than the throttle, or accept that. A process that crashes lifts nothing.
//
// The exit code is 1 if something went otherwise than told here.
import assert from "node:assert/strict";
import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { LockClient } from "holdfast";
import { kill, killAll, own } from "./children.mjs";
import { startServer } from "./server.mjs";
import { until } from "./until.mjs";

const nameOf = ({ user, assignment, exam }) => `submit:${user}:${assignment}:${exam ? "exam" : "practice"}`;

/** Whether this form is accepted now. */
async function accepts(client, form) {
  return (await client.getLock(nameOf(form)).tryLock(0, 5_000)) !== null;
}

/** Calls `alarm` for a hold that was really lost, not for a throttle that has run its time. */
function reportLosses(client, alarm) {
  client.on("lost", (event) => {
    if (event.lockName.startsWith("submit:") && event.reason === "expired") return;
    alarm(event);
  });
}

/** One of the two servers, in a process of its own. Both listen on the same port: node:cluster deals out the connections. */
async function serve() {
  const client = LockClient.connect({ port: Number(process.env.REDIS_PORT) });
  reportLosses(client, (event) => console.error("lost:", event));
  const server = createServer(async (request, response) => {
    const accepted = await accepts(client, await json(request));
    response.writeHead(accepted ? 202 : 429).end(String(process.pid));
  });
  server.listen(0, "127.0.0.1");
}

async function play() {
  const redis = await startServer();
  const servers = [1, 2].map(() => cluster.fork({ REDIS_PORT: redis.port }));
  for (const { process: child } of servers) own(child);
  const [[{ port }]] = await Promise.all(servers.map((server) => once(server, "listening")));

  /** A click. `connection: close`, so that the next one may come to the other server. */
  async function submit(form) {
    const response = await fetch(`http://127.0.0.1:${port}/submit`, {
      method: "POST",
      headers: { connection: "close" },
      body: JSON.stringify(form),
    });
    return { status: response.status, server: Number(await response.text()) };
  }
  const form = { user: "ada", assignment: "essay", exam: false };

  const clicks = await Promise.all([submit(form), submit(form)]);
  assert.notEqual(clicks[0].server, clicks[1].server, "the clicks came to two processes");
  assert.deepEqual(clicks.map(({ status }) => status).sort(), [202, 429], "a double click is accepted once");
  console.log("a double click, on two processes: accepted once");

  assert.equal((await submit(form)).status, 429, "still throttled");
  for (const other of [
    { ...form, user: "ben" },
    { ...form, assignment: "poem" },
    { ...form, exam: true },
  ])
    assert.equal((await submit(other)).status, 202, `not throttled: ${nameOf(other)}`);
  console.log("another user, assignment or exam flag: not throttled");

  // The servers crash. Their throttles are in Redis, and lapse in time.
  const last = { ...form, user: "cem" };
  await submit(last);
  await Promise.all(servers.map((server) => kill(server.process)));
  const connect = (options) => LockClient.connect({ port: redis.port }, options);
  const witness = connect();
  const left = await witness.getLock(nameOf(last)).remainTimeToLive();
  assert.ok(left > 0 && left <= 5_000, `${left} ms left`);

  // What `lost` and `close` do to such holds, with a shorter one.
  const client = connect({ watchdogTimeout: 1_500 }); // soon finds out about a loss: it renews every 500 ms
  const losses = [];
  const alarms = [];
  client.on("lost", ({ lockName, reason }) => losses.push(`${lockName} ${reason}`));
  reportLosses(client, ({ lockName }) => alarms.push(lockName));

  await client.getLock("report").lock();
  await witness.getLock("report").forceUnlock();
  await until("a real loss is told", () => losses.includes("report expired"));

  const dots = "submit:dot:essay:exam";
  await client.getLock(dots).tryLock(0, 1_000);
  const closing = client.close({ timeout: 5_000 }); // at most: it does not wait for longer than there are holds
  assert.equal(await witness.getLock(dots).isLocked(), true, "kept while close() waits");
  await closing;
  assert.equal(losses.at(-1), `${dots} expired`, "it ran its time");
  assert.equal(await witness.getLock(dots).isLocked(), false, "and the form is free again");
  assert.deepEqual(alarms, ["report"], "a throttle that lapses is no reason for an alarm");
  console.log("`lost`:", losses.join(", "), "- of which an alarm:", alarms.join());

  const hasty = connect();
  const evas = "submit:eva:essay:exam";
  hasty.once("lost", ({ reason }) => losses.push(`${evas} ${reason}`));
  await hasty.getLock(evas).tryLock(0, 5_000);
  await hasty.close({ timeout: 0 });
  assert.equal(losses.at(-1), `${evas} closed`);
  assert.equal(await witness.getLock(evas).isLocked(), false, "lifted early");
  console.log("close() with a timeout longer than the throttle lets it run its time; a shorter one lifts it");

  await witness.close();
  await killAll();
}

await (cluster.isPrimary ? play() : serve());
