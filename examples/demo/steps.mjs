// What the demo does, step by step. proofs.mjs has how.
import { givesUp, inScope, killed, nested, outlives, withLock, withoutLock } from "./proofs.mjs";

/** `code`: what the clerks do. `seconds`: about how long it takes, for the scale of the timeline. */
export const steps = [
  {
    short: "no lock",
    title: "Without a lock: 4 processes book 100 payments",
    code: "await book.add(payment)",
    seconds: 1,
    run: withoutLock,
  },
  {
    short: "lock.run",
    title: "With lock.run: the same 100 payments",
    code: "await lock.run(() => book.add(payment))",
    seconds: 3.2,
    run: withLock,
  },
  {
    short: "nested",
    title: "Nested: who holds the lock calls what takes the lock",
    code: "await lock.run(() => lock.run(() => book.add(payment)))",
    seconds: 1.2,
    run: nested,
  },
  {
    short: "scope",
    title: "In a scope: try, finally unlock, as with Redisson",
    code: `await client.scope(async () => {
    if (await lock.tryLock(500, 10_000)) try { … } finally { await lock.unlock() }
})`,
    seconds: 0.8,
    run: inScope,
  },
  {
    short: "killed",
    title: "Killed: the holder's process gets SIGKILL",
    code: 'process.kill(cleo, "SIGKILL")',
    seconds: 2.2,
    run: killed,
  },
  {
    short: "watchdog",
    title: "Watchdog: work that outlives its lease",
    code: "await lock.run(() => book.add(payment, slowly))",
    seconds: 2.8,
    run: outlives,
  },
  {
    short: "gives up",
    title: "Gives up: half a second, then without",
    code: "const hold = await lock.tryLock(500, 10_000) // null",
    seconds: 1.2,
    run: givesUp,
  },
];
