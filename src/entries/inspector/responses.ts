/** What all answers have in common. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { problemOf } from "../http.js";

/** No script, style or connection but those of the same origin, and no frame around it. */
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

/** Bytes from which a body is worth compressing. */
const LARGE = 4_096;
const compress = promisify(gzip);

export function respond(
  status: number,
  body: string | Uint8Array | ReadableStream | null,
  headers: Record<string, string> = {},
): Response {
  return new Response(body, { status, headers: { ...COMMON, ...headers } });
}

export function text(status: number, body: string, headers: Record<string, string> = {}): Response {
  return respond(status, `${body}\n`, { "content-type": "text/plain; charset=utf-8", ...headers });
}

/** Compressed for those who accept that. */
export async function json(
  request: Request,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const all = { "content-type": "application/json; charset=utf-8", vary: "accept-encoding", ...headers };
  const body = JSON.stringify(value);
  if (body.length < LARGE || !acceptsGzip(request)) return respond(status, body, all);
  return respond(status, await compress(body), { ...all, "content-encoding": "gzip" });
}

export function acceptsGzip(request: Request): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(request.headers.get("accept-encoding") ?? "");
}

/** By the code of a LockError; anything else is 500, and told to nobody. */
export function failure(error: unknown): Response {
  const problem = problemOf(error);
  if (!problem) return text(500, "The inspector failed.");
  return respond(problem.status, JSON.stringify(problem), { "content-type": "application/problem+json" });
}
