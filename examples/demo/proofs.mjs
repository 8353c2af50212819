// How each step is done, and checked. It returns lines that say what happened, and throws if it did not happen.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./clock.mjs";

/** Payments of each of the first two steps; the later ones book a few more. */
const DAY = 100;
/** Milliseconds of a booking that is meant to be seen in the timeline. */
const SLOW = 200;

/** For a test of the demo itself: does it notice when its lock does not lock? */
const broken = process.env.HOLDFAST_DEMO_BREAK === "lock";

const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

function check(happened, complaint) {
  if (!happened) throw new Error(complaint);
}

/** Each clerk books every fourth payment, all at the same time. */
function shareOut(clerks, payments, work) {
  return Promise.all(
    clerks.map((clerk, i) =>
      work(
        clerk,
        payments.filter((_, n) => n % clerks.length === i),
      ),
    ),
  );
}

export async function withoutLock({ clerks, book, payments }) {
  const day = payments.slice(0, DAY);
  await book.clear();
  await shareOut(clerks, day, (clerk, share) => clerk.ask("bookWithoutLock", { payments: share }));
  const { lost, missing, wanted } = await book.compare(day);
  check(lost > 0, "no update was lost, so this run showed nothing");
  return [`${lost} of ${DAY} updates were lost: ${missing} of ${wanted} is missing in the book`];
}

export async function withLock({ clerks, book, sheet }) {
  const task = broken ? "bookWithoutLock" : "bookWithRun";
  await book.clear();
  await shareOut(clerks, sheet.take(DAY), (clerk, share) => sheet.give(clerk, task, share));
  const { payments, wanted } = await sheet.check();
  return [`none of ${payments} updates was lost: all of ${wanted} is in the book`];
}

export async function nested({ clerks: [ada, ben], sheet }) {
  const holding = once(ada, "acquired");
  const booking = sheet.give(ada, "bookNested", sheet.take(3), SLOW);
  await holding;
  const next = once(ben, "acquired");
  await sheet.give(ben, "bookWithRun", sheet.take(1));
  const { holdCounts, leftAt } = await booking;
  const [benAt] = await next;
  check(String(holdCounts) === "2,2,1", `hold counts 2,2,1 were expected, not ${holdCounts}`);
  check(benAt > leftAt, "Ben got the lock while Ada was still inside");
  await sheet.check();
  return [`Ada re-entered twice (hold count 2, then 1 again); Ben got the lock only when she was done`];
}

export async function inScope({ clerks: [ada, ben], sheet }) {
  const holding = once(ada, "acquired");
  const outside = sheet.give(ada, "bookWithRun", sheet.take(1), SLOW);
  await holding;
  const { booked } = await sheet.give(ben, "bookInScope", sheet.take(1), SLOW);
  check(booked, "Ben did not get the lock in his scope");
  await outside;
  await sheet.check();
  const { code, message } = await ada.ask("unlockOutsideScope");
  check(code === "NOT_OWNER", `unlock() outside a scope: NOT_OWNER was expected, not ${code} (${message})`);
  return [
    "Ben waited, booked, and lock.unlock() gave back the hold of his scope",
    `outside a scope it does not guess, and rejects with ${code}:`,
    message,
  ];
}

export async function killed({ clerks: [ada, ben, cleo, dan], sheet, lock, lease }) {
  const holding = once(cleo, "acquired");
  // She is killed between her read and her write, so this payment is never booked, and nobody waits for her answer.
  sheet.give(cleo, "bookWithRun", sheet.take(1), 60_000);
  await holding;
  const others = [ada, ben, dan];
  const next = Promise.race(others.map((clerk) => once(clerk, "acquired")));
  const work = others.map((clerk) => sheet.give(clerk, "bookWithRun", sheet.take(1), SLOW / 2));
  // After the first renewal.
  await sleep(lease / 2);
  const askedAt = now();
  const left = await lock.remainTimeToLive();
  const killedAt = now();
  await cleo.kill();
  await Promise.all(work);
  const [nextAt] = await next;
  const early = askedAt + left - nextAt;
  const after = nextAt - killedAt;
  check(left > 0, "Cleo did not hold the lock when she was killed");
  check(early < 5, `the lock was given on ${seconds(early)} before the lease of the killed was over`);
  await sheet.check();
  return [
    `Cleo was killed with ${seconds(left)} left on her lease; the others went on after ${seconds(after)}`,
  ];
}

export async function outlives({ clerks: [ada, , , dan], sheet, lease }) {
  let renewals = 0;
  const count = () => {
    renewals += 1;
  };
  dan.on("renewed", count);
  const holding = once(dan, "acquired");
  const ended = once(dan, "released");
  const work = sheet.give(dan, "bookWithRun", sheet.take(1), 2.3 * lease);
  const [from] = await holding;
  const next = once(ada, "acquired");
  await sheet.give(ada, "bookWithRun", sheet.take(1), SLOW);
  const { heldToTheEnd } = await work;
  const [to] = await ended;
  const [nextAt] = await next;
  dan.off("renewed", count);
  check(heldToTheEnd && to - from > 2 * lease, "Dan's hold did not outlive its lease");
  check(renewals >= 2, `the watchdog renewed only ${renewals} times`);
  check(nextAt - from > 2 * lease, "Ada got the lock while Dan was still at work");
  await sheet.check();
  return [
    `Dan held a lease of ${seconds(lease)} for ${seconds(to - from)}: the watchdog renewed it ${renewals} times`,
  ];
}

export async function givesUp({ clerks: [ada, ben], sheet, lease }) {
  const holding = once(ada, "acquired");
  const ended = once(ada, "released");
  const work = sheet.give(ada, "bookWithRun", sheet.take(1), lease);
  await holding;
  const { gaveUp, from, to } = await ben.ask("giveUp");
  await work;
  const [endedAt] = await ended;
  const waited = to - from;
  check(gaveUp, "Ben got the lock although Ada held it");
  check(waited >= 490 && to < endedAt, `Ben waited ${seconds(waited)} instead of half a second`);
  await sheet.check();
  return [`Ada held on, so Ben got null after ${seconds(waited)} and went without`];
}
