/**
 * The test of the test: the checker finds locks that are wrong in one way each, by the fault that the mistake does not
 * survive; and the real lock passes the same faults.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { FindingKind } from "./checker.js";
import { type Actor, Scene, startServers } from "./scene.js";

const LEASE = 1_200;
const LONG = 90_000;
const LIMITS = { lease: LEASE, margin: 300, patience: 10_000 };

const servers = await startServers();

type Plot = (scene: Scene, a: Actor, b: Actor) => Promise<void>;

/** SIGKILL as soon as the first command with the lock's name has been sent, so that no second one follows. */
const killedWhileTaking: Plot = async (scene, a, b) => {
  const killed = new Promise((resolve) => {
    a.proxy.onCommand(({ command }) => {
      if (/^(GETSET|SETNX|SET|EVAL|EVALSHA)$/.test(command[0] ?? "") && command.includes(scene.lock))
        resolve(a.kill());
    });
  });
  const taking = a.take(0, LEASE).catch(() => {});
  await killed;
  await taking;
  await b.give(await b.take(LEASE + 1_000, LEASE));
};

const killedInside: Plot = async (_, a, b) => {
  await a.take(0, LEASE);
  await a.kill();
  await b.give(await b.take(LEASE + 1_000, LEASE));
};

/**
 * A stands still past the end of its lease, B takes the lock, A gives back late, and a third call asks while B is
 * inside.
 */
const lateUnlock: Plot = async (scene, a, b) => {
  const late = await a.take(0, LEASE - 1);
  a.worker.pause();
  await scene.untilLapsed();
  const other = await b.take(0, LONG);
  a.worker.resume();
  await a.give(late);
  await a.give(await a.take(1_500, LONG));
  await b.give(other);
};

/** The server executes the command that takes the lock, but its reply does not reach ioredis. */
const lostReply: Plot = async (scene, a, b) => {
  a.proxy.cutReplyOf((command) => command.includes(scene.lock));
  await a.give(await a.take(0, LONG));
  await b.give(await b.take(1_000, LONG));
};

/** A stands still past the end of its renewed lease, and B takes the lock before A's next renewal. */
const lateRenewal: Plot = async (scene, a, b) => {
  const late = await a.take(0, LEASE);
  a.worker.pause();
  await scene.untilLapsed();
  const other = await b.take(0, LONG);
  a.worker.resume();
  await sleep(LEASE); // longer than a renewal takes; that no renewal comes cannot be seen
  await a.give(late);
  await b.give(other);
};

const plots: [planted: string, title: string, plot: Plot, found: FindingKind[]][] = [
  ["getset-expire", "GETSET, then EXPIRE, and a SIGKILL between", killedWhileTaking, ["orphan"]],
  ["setnx-no-ttl", "SETNX without TTL, and a SIGKILL inside", killedInside, ["orphan"]],
  ["del-unchecked", "DEL without owner check after an expired lease", lateUnlock, ["overlap", "intrusion"]],
  ["hincrby-resent", "HINCRBY sent again after a lost reply", lostReply, ["orphan"]],
  ["renew-lost", "renewal of a lost hold", lateRenewal, ["overlap", "intrusion"]],
];

describe.concurrent.each(plots)("%s: %s", (planted, _, plot, found) => {
  test.each([
    ["is found", planted, found],
    ["and the real lock passes", "holdfast", []],
  ])(
    "%s",
    async (_title, lock, expected) => {
      const options = { watchdogTimeout: LEASE };
      const scene = new Scene(servers, { planted: lock, options }, `${planted}-${lock}`);
      try {
        const [a, b] = await Promise.all([scene.enter("a"), scene.enter("b")]);
        await plot(scene, a, b);
        const findings = await scene.judge(LIMITS);
        const kinds = new Set(findings.map(({ kind }) => kind));
        // A planted lock may be found in several ways; the real lock must not be found in any.
        if (expected.length === 0) expect(findings).toEqual([]);
        else for (const kind of expected) expect(kinds).toContain(kind);
      } finally {
        await scene.end();
      }
    },
    120_000,
  );
});
