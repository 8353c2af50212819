// Not timed: does it exclude at all, in two processes? What a lost lock's late release does. Runs before the others.
import { sleep } from "../lib/stats.mjs";
import { audit, TTL } from "../work/serial.mjs";

const ENOUGH_MS = 2_000;
const REFUSED_MS = 300;

async function soon(holds, ms) {
  const end = performance.now() + ms;
  while (!holds() && performance.now() < end) await sleep(5);
  return holds();
}

const worker = {
  audit,
  async warm() {},
  ask(w, { slot, key }) {
    const asked = { hold: undefined, error: undefined };
    w.state[slot] = asked;
    w.inst.acquire(key, TTL).then(
      (hold) => {
        asked.hold = hold;
      },
      (error) => {
        asked.error = error;
      },
    );
  },
  async got(w, { slot, ms }) {
    const asked = w.state[slot];
    await soon(() => asked.hold !== undefined || asked.error !== undefined, ms);
    return asked.hold !== undefined;
  },
  /** It may fail, or never settle. */
  async release(w, { slot }) {
    const begun = performance.now();
    const how = await Promise.race([
      Promise.resolve(w.inst.release(w.state[slot].hold)).then(
        () => "resolved",
        () => "rejected",
      ),
      sleep(2 * ENOUGH_MS).then(() => "pending"),
    ]);
    return { how, ms: how === "pending" ? Number.NaN : performance.now() - begun };
  },
};

async function take(child, slot, key) {
  await child.call("ask", { slot, key });
  if (!(await child.call("got", { slot, ms: ENOUGH_MS }))) throw new Error("a free lock was not granted");
}

async function measure({ children: [a, b], servers: [server] }) {
  await server.flush();
  await take(a, 1, "c1");
  await b.call("ask", { slot: 1, key: "c1" });
  const keptOut = !(await b.call("got", { slot: 1, ms: REFUSED_MS }));
  await a.call("release", { slot: 1 });
  const handsOver = await b.call("got", { slot: 1, ms: ENOUGH_MS });
  await b.call("release", { slot: 1 });

  await take(a, 2, "c2");
  // The lock is lost, as after its TTL or a failover.
  await server.flush();
  await take(b, 2, "c2");
  const late = await a.call("release", { slot: 2 });
  await a.call("ask", { slot: 3, key: "c2" });
  const harmless = !(await a.call("got", { slot: 3, ms: REFUSED_MS }));
  await b.call("release", { slot: 2 });
  await a.call("got", { slot: 3, ms: ENOUGH_MS });
  await a.call("release", { slot: 3 });

  const audits = await Promise.all(
    [a, b].map((child) => child.call("audit", { key: "c3", tasks: 3, sections: 8 })),
  );
  return {
    keptOut: Number(keptOut),
    handsOver: Number(handsOver),
    harmless: Number(harmless),
    lateMs: late.ms,
    lateRejects: Number(late.how === "rejected"),
    sections: audits[0].done + audits[1].done,
    violations: audits[0].violations + audits[1].violations + Number(!keptOut) + Number(!harmless),
  };
}

export default {
  id: "correctness",
  title: "does it exclude at all",
  order: 0,
  floors: [],
  repeats: 1,
  variants: [{ label: "two processes", procs: 2 }],
  metrics: [
    { key: "keptOut", label: "a held lock keeps another process out" },
    { key: "handsOver", label: "the waiter gets it after the release" },
    { key: "harmless", label: "a late release leaves the next owner's lock" },
    { key: "lateMs", label: "that late release settles after ms" },
    { key: "lateRejects", label: "and rejects" },
    { key: "sections", label: "sections audited" },
  ],
  worker,
  measure,
};
