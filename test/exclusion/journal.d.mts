/** What TypeScript uses of journal.mjs: the scripts by which processes of other languages keep the same journal. */
export const ENTER: string;
export const LEAVE: string;
