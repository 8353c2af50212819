/** How the text of an error names the holder of a lock. */

/** Says so of holds of this process. */
export const THIS_PROCESS = "this process itself";

/**
 * Who holds one of these locks, in words for people, others before this process; undefined where that is not known soon. Never
 * rejects.
 */
export type WhoHolds = (locks: readonly NamedKey[]) => Promise<string | undefined>;

/** A lock's name, and its key with the prefix. */
export interface NamedKey {
  readonly name: string;
  readonly key: string;
}

/** The first of those who hold, others before this process. */
export function foremost(holders: readonly (string | undefined)[]): string | undefined {
  const known = holders.filter((holder) => holder !== undefined);
  return known.find((holder) => holder !== THIS_PROCESS) ?? known[0];
}
