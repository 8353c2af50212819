import type { Outcome } from "./simulation.js";
import type { Done, Finding, Job } from "./simulation-worker.js";

export interface Report extends Omit<Done, "seen"> {
  readonly seen: ReadonlySet<string>;
  readonly findings: readonly Finding[];
  readonly replayed: Outcome | undefined;
}

export type Work = Partial<Omit<Job, "part" | "parts">>;

export function bundle(): Promise<string>;
export function simulate(file: string, work: Work, processes?: number): Promise<Report>;
