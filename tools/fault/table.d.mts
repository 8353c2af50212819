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

/** The rows of a page, by default of docs/faults.md, that begin with the number of a fault. */
export function faultRows(text?: string): FaultRow[];

/** What Vitest is told by `-t`: a regular expression. */
export function patternOf(test: FaultTest): string;
