/** What tasks on a virtual lock claim: as operations for the search, and as sections for the check of intervals. */
import type { Ask, History as Intervals } from "../../exclusion/checker.js";
import { MS, type Section } from "../../exclusion/sections.js";
import type { Operation, Outcome } from "../history.js";
import type { LockAnswer, LockCall, Side } from "../specs.js";
import type { VirtualProcess, World } from "./world.js";

export const NAME = "x";
/** Milliseconds within which a command arrives, if it arrives at all. */
const LATEST = 600;
const OPEN = Number.POSITIVE_INFINITY;

/** A call that is under way: its outcome is unknown until it is settled. */
export class OpenCall implements Operation<LockCall, LockAnswer> {
  readonly name: string = NAME;
  readonly caller: string;
  readonly call: LockCall;
  readonly invoked: number;
  settled: number = OPEN;
  outcome: Outcome<LockAnswer> = { kind: "unknown" };

  constructor(caller: string, call: LockCall, invoked: number) {
    this.caller = caller;
    this.call = call;
    this.invoked = invoked;
  }

  settle(at: number, answer?: LockAnswer): void {
    this.settled = at;
    if (answer) this.outcome = { kind: "ok", answer };
  }

  fail(): void {
    this.outcome = { kind: "failed" };
  }
}

/** What a task knows of its hold. */
export interface VirtualHold {
  readonly owner: string;
  readonly side: Side;
  readonly process: VirtualProcess;
  /** Milliseconds. */
  readonly lease: number;
  readonly renewed: boolean;
  readonly askedAt: number;
  readonly placeAt: number | undefined;
  readonly enteredAt: number;
  readonly token: bigint;
  deadline: number;
  lost: boolean;
  /** Whether its release has been called. */
  over: boolean;
  /** The end of a stay with the lock; absent for nested holds. */
  stay?: { readonly left: "in time" | "too late"; readonly at: number };
}

export class LockRecord {
  readonly operations: OpenCall[] = [];
  readonly stays: VirtualHold[] = [];
  readonly asks: Ask[] = [];
  forced = false;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  open(caller: string, call: LockCall): OpenCall {
    const operation = new OpenCall(caller, call, this.#world.stamp());
    this.operations.push(operation);
    return operation;
  }

  /** Adds an operation that is over, or that may still happen; without an answer it may never happen. */
  add(caller: string, call: LockCall, invoked: number, settled: number, answer?: LockAnswer): void {
    const operation = new OpenCall(caller, call, invoked);
    operation.settle(settled, answer);
    this.operations.push(operation);
  }

  /** From its deadline on the hold may end by itself; with `overBy` it has surely ended by that time. */
  expires({ owner, side, deadline }: VirtualHold, overBy?: number): void {
    const answer = overBy === undefined ? undefined : ({ ended: true } as const);
    const settled = overBy ?? OPEN;
    this.add(owner, { do: "expire", side }, Math.min(deadline, settled), settled, answer);
  }

  /** Call this at the end, when no process acts any more. */
  close(): void {
    for (const hold of this.stays) {
      const { diedAt } = hold.process;
      if (diedAt !== undefined) this.expires(hold, diedAt + hold.lease + LATEST);
    }
    for (const { caller, call, invoked, settled, outcome } of [...this.operations]) {
      if (call.do !== "acquire" || outcome.kind !== "unknown" || settled !== OPEN) continue;
      this.add(caller, { do: "expire", side: call.side ?? "write" }, invoked, OPEN);
    }
  }

  intervals(before: "all" | "readers" | undefined): Intervals {
    const ends = this.#world.processes.flatMap(({ name, diedAt }) =>
      diedAt === undefined ? [] : [[name, ns(diedAt)] as const],
    );
    const sections = this.stays.map((hold, i) => sectionOf(hold, `s${i}`, before));
    const forced = new Set(this.forced ? [NAME] : []);
    return { sections, deaths: new Map(ends), asks: this.asks, forced };
  }
}

function sectionOf(hold: VirtualHold, id: string, before: "all" | "readers" | undefined): Section {
  const { owner, side, process, lease, renewed, askedAt, placeAt, enteredAt, deadline, token, stay } = hold;
  return {
    lock: NAME,
    id,
    process: process.name,
    owner,
    shared: side === "read",
    askedAt: ns(askedAt),
    place: placeAt === undefined || !before ? undefined : { at: ns(placeAt), before },
    enteredAt: ns(enteredAt),
    deadline: renewed && stay ? undefined : ns(deadline),
    leftAt: stay && ns(stay.at),
    lostAt: stay?.left === "too late" ? ns(stay.at) : undefined,
    lease,
    token: side === "write" ? token : undefined,
    intruded: [],
    torn: false,
  };
}

export function ns(ms: number): bigint {
  return BigInt(Math.round(Math.min(ms, Number.MAX_SAFE_INTEGER / 1e6))) * MS;
}
