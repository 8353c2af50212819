/**
 * Returns the package ioredis, or undefined if it cannot be loaded. The function itself is undefined if a bundler made
 * nothing of the file.
 */
export declare const loadIoredis: (() => unknown) | undefined;
