/** Gives the package ioredis, or undefined where it cannot be loaded. Is itself undefined where a bundler made nothing of the file. */
export declare const loadIoredis: (() => unknown) | undefined;
