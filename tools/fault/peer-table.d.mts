/** What each peer does under each fault, as docs/faults.md has it. */
export interface PeerTable {
  /** A peer each. */
  readonly columns: readonly { readonly id: string; readonly version: string }[];
  /** A fault each; `id` is what the row's command names. */
  readonly rows: readonly {
    readonly id: string;
    readonly fault: string;
    readonly cells: readonly string[];
  }[];
  cell(fault: string, peer: string): string | undefined;
}

/** The table of a page, by default of docs/faults.md. */
export function peerTable(text?: string): PeerTable;
