/** What a check of `holdfast doctor` is given, and what it finds. */
import { monotonic } from "../../../base/platform.js";
import type { LockClient } from "../../../index.js";
import type { Server } from "../server.js";
import type { Facts } from "./facts.js";

export interface Patient {
  readonly client: LockClient;
  /** On a cluster: all of it. */
  readonly server: Server;
  /** Of one server. */
  readonly facts: Facts;
  /** Of all names; "" for none. */
  readonly prefix: string;
}

export type Level = "good" | "note" | "poor" | "bad";

export interface Finding {
  readonly level: Level;
  readonly finding: string;
  readonly why?: string | undefined;
  readonly cure?: string | undefined;
}

export type Check = (patient: Patient) => Promise<Finding>;

export const good = (finding: string): Finding => ({ level: "good", finding });
export const note = (finding: string): Finding => ({ level: "note", finding });
export const bad = (finding: string, why: string, cure: string): Finding => ({
  level: "bad",
  finding,
  why,
  cure,
});

/** How many milliseconds it takes until a PING is answered. */
export async function timeOfPing(server: Server): Promise<number> {
  const begun = monotonic();
  await server.call("PING");
  return monotonic() - begun;
}
