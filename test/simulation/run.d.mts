import type { Kind } from "./schedule.js";
import type { Outcome } from "./simulation.js";
import type { Finding, Job } from "./simulation-worker.js";

export const KINDS: readonly Kind[];

export interface Edit {
  readonly script?: string;
  readonly file?: string;
  readonly from: string;
  readonly to: string;
}

export interface Report {
  readonly played: number;
  readonly calls: number;
  readonly granted: number;
  /** Of all histories, and the states that were searched to put them in order. */
  readonly operations: number;
  readonly states: number;
  /** Of the last schedule of each process. */
  readonly hashes: readonly string[];
  readonly findings: readonly Finding[];
  readonly replayed: Outcome | undefined;
}

export type Work = Partial<Omit<Job, "part" | "parts">> & { readonly schedules?: number };

export function bundle(name?: string, edits?: readonly Edit[]): Promise<string>;
export function simulate(file: string, work: Work, processes?: number): Promise<Report>;
