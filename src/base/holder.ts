/** How the text of an error names the holder of a lock. */

/** The text for a holder in this process. */
export const THIS_PROCESS = "this process itself";

/**
 * Describes for people who holds one of these locks; a holder in another process goes before one in this process.
 * Resolves with undefined if that is not known soon. Never rejects.
 */
export type WhoHolds = (locks: readonly NamedKey[]) => Promise<string | undefined>;

/** A lock's name, and its key with the prefix. */
export interface NamedKey {
  readonly lockName: string;
  readonly key: string;
}

/** The first holder that is known; one in another process goes before one in this process. */
export function foremost(holders: readonly (string | undefined)[]): string | undefined {
  const known = holders.filter((holder) => holder !== undefined);
  return known.find((holder) => holder !== THIS_PROCESS) ?? known[0];
}
