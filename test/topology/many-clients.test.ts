/** Many clients on one connection of the user: its emitter has no more listeners than one client needs. */
import { type EventEmitter, errorMonitor } from "node:events";
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failOnUnhandledRejections, freshName, Stage, turn } from "../faults/harness.js";
import { forFile, recordWarnings, UNHURRIED } from "../support/index.js";

failOnUnhandledRejections();

/** More than ten, because Node warns of the eleventh listener. */
const MANY = 25;

const warnings = recordWarnings();
const stage = await forFile(Stage.start(["standalone", "cluster"]));

/** The number of listeners of each event that clients listen to. */
function counts(emitter: EventEmitter): number[] {
  return [errorMonitor, "close", "ready", "refresh", "-node", "node error"].map((event) =>
    emitter.listenerCount(event),
  );
}

describe.each(["standalone", "cluster"] as const)("%s", (topology) => {
  test("many clients on one connection cause no warning, and listen as often as one client does [B36]", async () => {
    const redis = topology === "cluster" ? stage.cluster.connect() : stage.server.connect();
    const emitter = redis as unknown as EventEmitter;
    await redis.ping();
    const without = counts(emitter);
    const first = new LockClient(redis, UNHURRIED);
    const withOne = counts(emitter);
    const clients = Array.from({ length: MANY }, () => new LockClient(redis, UNHURRIED));
    await Promise.all(clients.map((client) => client.ready()));
    expect(counts(emitter)).toEqual(withOne);
    const name = freshName();
    let inside = 0;
    await Promise.all(clients.map((client) => client.getLock(name).run(() => void inside++)));
    expect(inside).toBe(MANY);
    await first.close();
    expect(counts(emitter)).toEqual(withOne);
    await Promise.all(clients.map((client) => client.close()));
    expect(counts(emitter)).toEqual(without);
    await turn();
    expect(warnings).toEqual([]);
  });
});
