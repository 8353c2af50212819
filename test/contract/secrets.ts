/** The secrets that no text of the library may show, for the tests that look for them. */
import { expect } from "vitest";

export const PASSWORD = "pa55-w0rd";
export const USER_PASSWORD = "u5er-s3cret";
/** A lease, and so a script argument, that no other number looks like. */
export const LEASE = 86_413_579;

export function url(user: string, password: string, port: number): string {
  return `redis://${user}:${password}@127.0.0.1:${port}`;
}

/** The text has no password, no URL of Redis and no part of a script. */
export function expectClean(text: string): void {
  for (const secret of [PASSWORD, USER_PASSWORD, String(LEASE), "redis.call"]) {
    expect(text).not.toContain(secret);
  }
  expect(text).not.toMatch(/rediss?:\/\/[^\s,]/);
}
