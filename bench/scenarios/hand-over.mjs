// Waiters of one process. In a loop who has given back asks again at once, so it may overtake those who sleep between two tries. In a burst
// all ask at once, each is served once, then all ask again: what the hand-over alone costs.
import { worker } from "../work/contend.mjs";
import { burstMetrics, loopMetrics, measureCrowd, warmCrowd } from "../work/crowd.mjs";

const loop = (waiters) => ({ label: `${waiters} waiters, loop`, waiters, metrics: loopMetrics });
const burst = (waiters) => ({
  label: `${waiters} waiters, bursts`,
  waiters,
  burst: true,
  metrics: burstMetrics,
});

export default {
  id: "hand-over",
  title: "hand-over in one process",
  order: 4,
  floors: ["raw-fifo"],
  pin: "together",
  variants: [
    loop(16),
    // Long enough that one turn more or less is little of what each got.
    { ...loop(128), peersInFull: true, windowMs: 1_600 },
    burst(16),
    burst(128),
    {
      ...burst(10_000),
      label: "10 000 waiters, one burst, given back at once",
      holdMs: 0,
      rounds: 1,
      graceMs: 20_000,
      peersInFull: true,
    },
  ],
  metrics: loopMetrics,
  worker,
  warm: (context) => warmCrowd(context, [8]),
  measure: ({
    variant: { waiters, burst: isBurst = false, holdMs = 1, rounds, graceMs, windowMs },
    ...context
  }) =>
    measureCrowd(context, {
      crowd: [waiters],
      burst: isBurst,
      holdMs,
      rounds,
      graceMs,
      counter: holdMs > 0,
      windowMs: windowMs ?? (isBurst ? context.sliceMs : 2 * context.sliceMs),
    }),
};
