/** Makes answers, with the headers that all of them have in common. */
import { problemOf } from "../http.js";

/** Allows only scripts, styles and connections of the same origin, and no frame around the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const COMMON: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

export function respond(
  status: number,
  body: string | ReadableStream | null,
  headers: Record<string, string> = {},
): Response {
  return new Response(body, { status, headers: { ...COMMON, ...headers } });
}

export function text(status: number, body: string, headers: Record<string, string> = {}): Response {
  return respond(status, `${body}\n`, { "content-type": "text/plain; charset=utf-8", ...headers });
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}): Response {
  const type = { "content-type": "application/json; charset=utf-8" };
  return respond(status, JSON.stringify(value), { ...type, ...headers });
}

/** The answer for an error: by the code of a LockError; any other error is 500, and its text is told to nobody. */
export function failure(error: unknown): Response {
  const problem = problemOf(error);
  if (!problem) return text(500, "The inspector failed.");
  return respond(problem.status, JSON.stringify(problem), { "content-type": "application/problem+json" });
}
