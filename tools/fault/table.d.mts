/** A title in several parts, divided by "…", leaves out what is between them. */
export interface FaultTest {
  readonly file: string;
  readonly title: string;
}

export interface FaultRow {
  readonly id: string;
  readonly fault: string;
  readonly holder: string;
  readonly waiters: string;
  readonly tests: readonly FaultTest[];
  readonly command: string;
  readonly since: string;
}

export interface BugRow {
  readonly id: string;
  readonly harm: string;
  readonly bug: string;
  readonly foundBy: string;
  readonly tests: readonly FaultTest[];
  /** As 2026-11-22. */
  readonly mended: string;
}

/** The rows of a page, by default of docs/faults.md, that begin with the number of a fault. */
export function faultRows(text?: string): FaultRow[];

/** The rows of a page, by default of docs/evidence.md, that begin with the number of a bug. */
export function bugRows(text?: string): BugRow[];

/** What Vitest is told by `-t`: a regular expression. */
export function patternOf(test: FaultTest): string;
