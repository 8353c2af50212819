export interface IdRow {
  readonly id: string;
  /** The cells behind the id. */
  readonly cells: readonly string[];
  /** False if the row says what is no longer promised, and why. */
  readonly needsTest: boolean;
}

/** A kind of id: what it looks like, and who knows which there are. */
export interface IdKind {
  readonly pattern: RegExp;
  rows(): IdRow[];
}

export const KINDS: Readonly<Record<"fault" | "bug" | "sentence", IdKind>>;

/** For each id in a title the files below test/ that have it. */
export function usesOf(kind: IdKind): Map<string, string[]>;

/** Rows without a test, and ids without a row. */
export function wrongIds(rows: readonly IdRow[], uses: ReadonlyMap<string, readonly string[]>): string[];
