/** Exact versions, the oldest first. */
export declare const NODES: readonly string[];
/** Of those the newest of a line. */
export declare function newestNode(major: number): string | undefined;
/** The path of the program. @throws Error with the reason where it cannot be had */
export declare function fetchNode(version: string): string;
