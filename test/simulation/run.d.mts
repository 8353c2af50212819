import type { Job as CommandsJob, Report as CommandsReport } from "./commands/worker.js";
import type { Outcome } from "./simulation.js";
import type { Done, Finding, Job } from "./simulation-worker.js";

export interface Report extends Done {
  readonly findings: readonly Finding[];
  readonly replayed: Outcome | undefined;
}

export type Work = Partial<Omit<Job, "part" | "parts">>;

export function bundle(program?: string): Promise<string>;
export function simulate(file: string, work: Work, processes?: number): Promise<Report>;
export function playCommands(
  job: Omit<CommandsJob, "part" | "parts">,
  processes?: number,
): Promise<CommandsReport>;
