/**
 * The steps of a history, as data that can be generated, shrunk and printed. Clients, holds and calls are named by their
 * place in a list, modulo its length.
 */
import fc from "fast-check";
import { CLIENTS } from "./world.js";

/** The owner of a call: that of a bare call, a named one (by option or by scope), or the owner of a hold. */
export type By =
  | { readonly as: "bare" }
  | { readonly as: "owner" | "scope"; readonly n: number }
  | { readonly as: "hold"; readonly hold: number };

interface Calling {
  readonly client: number;
  readonly side: number;
  readonly by: By;
}

interface Asking extends Calling {
  readonly wait: number | undefined;
  readonly lease: number | undefined;
}

export type Step = { readonly hasty: boolean } & (
  | ({ readonly do: "lock" | "tryLock" } & Asking)
  | ({ readonly do: "unlock" } & Calling)
  /** `hold.unlock()`: for a held hold, or for any hold. */
  | { readonly do: "giveBack" | "giveBackAny"; readonly hold: number }
  | { readonly do: "extend"; readonly hold: number; readonly lease: number }
  | { readonly do: "abort"; readonly call: number }
  | { readonly do: "force"; readonly client: number; readonly side: number }
  /** Another program deletes the lock's keys, or a failover loses them. */
  | { readonly do: "vanish" }
  | { readonly do: "close"; readonly client: number }
  | { readonly do: "pass"; readonly ms: number }
  /** Time passes, and the client's timers are late. */
  | { readonly do: "stall"; readonly client: number; readonly ms: number }
);

const client = fc.nat({ max: CLIENTS - 1 });
const side = fc.nat({ max: 1 });
const hold = fc.nat({ max: 7 });
const n = fc.nat({ max: 1 });
const wait = fc.constantFrom(undefined, undefined, 0, 5_000, 20_000, 60_000);
const lease = fc.constantFrom(undefined, 90_000, 50_000, 25_000, 12_000);
const ms = fc.constantFrom(500, 3_000, 8_000, 14_000, 35_000, 70_000);

const by: fc.Arbitrary<By> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ as: fc.constant("bare" as const) }) },
  { weight: 4, arbitrary: fc.record({ as: fc.constantFrom("owner" as const, "scope" as const), n }) },
  { weight: 2, arbitrary: fc.record({ as: fc.constant("hold" as const), hold }) },
);

/** Mostly an owner that holds the lock. */
const byHolder: fc.Arbitrary<By> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ as: fc.constant("hold" as const), hold }) },
  { weight: 1, arbitrary: by },
);

/** True in a fifth of all cases. */
const hasty = fc.nat({ max: 4 }).map((value) => value === 4);

function step<D extends Step["do"], T>(
  weight: number,
  name: D,
  values: { [K in keyof T]: fc.Arbitrary<T[K]> },
) {
  const arbitrary = fc.record({ do: fc.constant(name), hasty, ...values });
  return { weight, arbitrary: arbitrary as unknown as fc.Arbitrary<Step> };
}

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  step(60, "lock", { wait, lease, client, side, by }),
  step(40, "tryLock", { wait, lease, client, side, by }),
  step(30, "unlock", { client, side, by: byHolder }),
  step(60, "giveBack", { hold }),
  step(8, "giveBackAny", { hold }),
  step(20, "extend", { hold, lease: fc.constantFrom(7_000, 30_000, 100_000) }),
  step(20, "abort", { call: hold }),
  step(10, "force", { client, side }),
  step(3, "vanish", {}),
  step(4, "close", { client }),
  step(50, "pass", { ms }),
  step(15, "stall", { client, ms }),
);

export const histories: fc.Arbitrary<Step[]> = fc.array(anyStep, {
  minLength: 6,
  maxLength: 20,
  size: "max",
});
