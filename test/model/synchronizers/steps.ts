/** The steps of histories of all synchronizers, as data: what happens to the clients, the server and the time. */
import fc from "fast-check";
import { CLIENTS } from "../world.js";

export type CommonStep =
  /** Aborts one of the waiting calls. */
  | { readonly do: "abort"; readonly call: number }
  | { readonly do: "close"; readonly client: number }
  /** Another program deletes the keys, or a failover loses them. */
  | { readonly do: "vanish" }
  | { readonly do: "pass"; readonly ms: number }
  /** Time passes, and the client's timers are late. */
  | { readonly do: "stall"; readonly client: number; readonly ms: number }
  /** The subscribed connections are cut; messages that are published until they are back are lost. */
  | { readonly do: "deafen" }
  /** The connection is cut after the next script, which is executed or not, and is sent again. */
  | { readonly do: "loseReply" | "loseRequest" };

export interface Hasty {
  /** The next step comes in the same tick, if both are calls. */
  readonly hasty: boolean;
}

/** The values of steps. */
export const client: fc.Arbitrary<number> = fc.nat({ max: CLIENTS - 1 });
export const index: fc.Arbitrary<number> = fc.nat({ max: 7 });
const ms = fc.constantFrom(500, 3_000, 8_000, 14_000, 35_000, 70_000);
/** True in a quarter of all cases. */
const hasty = fc.nat({ max: 3 }).map((value) => value === 3);

export type Weighted<S> = { weight: number; arbitrary: fc.Arbitrary<S & Hasty> };

/** One kind of step, and how often it comes. */
export function step<S extends { do: string }>(
  weight: number,
  name: S["do"],
  values: Record<string, fc.Arbitrary<unknown>> = {},
): Weighted<S> {
  const arbitrary = fc.record({ do: fc.constant(name), hasty, ...values });
  return { weight, arbitrary: arbitrary as unknown as fc.Arbitrary<S & Hasty> };
}

/** Histories of these steps and the common ones. */
export function historiesOf<S extends { do: string }>(
  own: Weighted<S>[],
): fc.Arbitrary<((S | CommonStep) & Hasty)[]> {
  type Any = (S | CommonStep) & Hasty;
  const common: Weighted<CommonStep>[] = [
    step(16, "abort", { call: index }),
    step(12, "close", { client }),
    step(3, "vanish"),
    step(30, "pass", { ms }),
    step(8, "stall", { client, ms }),
    step(3, "deafen"),
    step(14, "loseReply"),
    step(8, "loseRequest"),
  ];
  const all = [...own, ...common] as unknown as { weight: number; arbitrary: fc.Arbitrary<Any> }[];
  return fc.array(fc.oneof(...all), { minLength: 6, maxLength: 20, size: "max" });
}
