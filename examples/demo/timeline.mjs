// Who held, who waited, and when: made from the clerks' events, drawn by screen.mjs and svg.mjs.
import { now } from "./clock.mjs";

/** What a clerk can be doing, in the order of the legends. Doing none of these it has no span. */
export const STATES = {
  holds: "holds the lock",
  nested: "holds it twice (nested)",
  waits: "waits",
  "no-lock": "writes without a lock",
  lapsing: "lease of the killed",
};

/** What happens in a moment. */
export const MARKS = {
  renewed: "renewed by the watchdog",
  "gave-up": "gives up",
  killed: "killed",
  lost: "lost its hold",
};

class Lane {
  name;
  /** { state, from, to } in order; the last one may be open. */
  spans = [];
  /** { mark, at } */
  marks = [];
  dead = false;
  #depth = 0;

  constructor(name) {
    this.name = name;
  }

  /** undefined when idle. */
  get state() {
    const last = this.spans.at(-1);
    return last?.to === undefined ? last?.state : undefined;
  }

  record(event, at) {
    // What the channel still carried when the process was killed.
    if (this.dead) return;
    if (event in MARKS) this.marks.push({ mark: event, at });
    if (event === "acquired") this.#depth += 1;
    if (event === "released") this.#depth -= 1;
    if (event === "lost" || event === "killed") this.#depth = 0;
    if (event === "killed") this.dead = true;
    if (event !== "renewed") this.become(this.#stateAfter(event), at);
  }

  become(state, at) {
    if (state === this.state) return;
    const last = this.spans.at(-1);
    if (last && last.to === undefined) last.to = at;
    if (state !== undefined) this.spans.push({ state, from: at, to: undefined });
  }

  #stateAfter(event) {
    if (event === "killed") return this.state === "holds" ? "lapsing" : undefined;
    if (event === "no-lock") return "no-lock";
    if (this.#depth > 0) return this.#depth > 1 ? "nested" : "holds";
    return event === "waiting" ? "waits" : undefined;
  }
}

export class Timeline {
  lanes;
  /** Those of steps.mjs, with { number, from, to, ok, lines } */
  steps = [];

  constructor(clerks) {
    this.lanes = clerks.map((clerk) => {
      const lane = new Lane(clerk.name);
      clerk.on("event", (event, at) => {
        lane.record(event, at);
        if (event === "acquired") this.#endLapsing(at);
      });
      return lane;
    });
  }

  begin(plan) {
    const step = { ...plan, number: this.steps.length + 1, from: now() };
    this.steps.push(step);
    return step;
  }

  /** Somebody else has the lock now, so the lease of the killed one is over. */
  #endLapsing(at) {
    for (const lane of this.lanes) if (lane.state === "lapsing") lane.become(undefined, at);
  }
}
