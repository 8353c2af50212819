/** Decides who may look, and who may unlock. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { text } from "./responses.js";

/** What a request wants: to look, or to unlock. */
export type Action = "read" | "unlock";

/**
 * True lets the request pass, false answers 403; a Response is the answer instead, such as a 401 or a redirect to a
 * login page.
 */
export type Authorize = (
  request: Request,
  action: Action,
) => boolean | Response | Promise<boolean | Response>;

/** Headers in which proxies tell the client's address. */
const CLIENT_ADDRESSES = [
  "x-forwarded-for",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "cf-connecting-ip",
  "true-client-ip",
  "fastly-client-ip",
];

/** The addresses that requests of `nodeHandler` came from. */
const REMOTES = new WeakMap<Request, string>();

export function setRemote(request: Request, address: string | undefined): void {
  if (address !== undefined) REMOTES.set(request, address);
}

/** The answer that refuses a request; undefined lets it pass. Without `authorize`: reading, on this machine alone. */
export async function refusalOf(
  authorize: Authorize | undefined,
  request: Request,
  action: Action,
): Promise<Response | undefined> {
  if (authorize) {
    const verdict = await authorize(request, action);
    if (verdict instanceof Response) return verdict;
    return verdict === true ? undefined : text(403, "Not allowed.");
  }
  if (action !== "read")
    return text(403, "This inspector is read-only: createInspector got no option authorize.");
  if (isLocal(request)) return undefined;
  return text(403, "Without the option authorize, the inspector answers only on localhost.");
}

/**
 * Whether a request comes from this machine, and no proxy has passed it on.
 *
 * Keeps out a page elsewhere that makes a browser send requests to this machine by a name of its own (DNS rebinding).
 * That name stands in the URL. A proxy or a framework may put its own name there. So every other host and address in
 * the request has to be local as well.
 */
export function isLocal(request: Request): boolean {
  const { headers } = request;
  const list = (name: string) => headers.get(name)?.split(",") ?? [];
  const hosts = [new URL(request.url).host, ...list("host"), ...list("x-forwarded-host")];
  const remote = REMOTES.get(request);
  const told = CLIENT_ADDRESSES.flatMap(list);
  const addresses = [...told, ...(remote === undefined ? [] : [remote])];
  return (
    hosts.every((host) => isLoopback(hostnameOf(host.trim()))) &&
    addresses.every((address) => isLoopback(hostnameOf(bracketed(address.trim())))) &&
    (told.length > 0 || !isForwarded(headers)) &&
    !headers.has("forwarded")
  );
}

/** Whether a proxy has passed the request on, by any header but those that have the client's address. */
function isForwarded(headers: Headers): boolean {
  return headers.has("via") || [...headers.keys()].some((name) => name.startsWith("x-forwarded-"));
}

/** The host as URLs write it: `0x7f.1` is 127.0.0.1. "" for what is no host. */
function hostnameOf(host: string): string {
  const url = `http://${host}/`;
  return URL.canParse(url) ? new URL(url).hostname : "";
}

/** An address as URLs write it. `::ffff:127.0.0.1` is how a socket for both families tells an IPv4 address. */
function bracketed(address: string): string {
  const plain = address.replace(/^::ffff:(?=[\d.]+$)/i, "");
  return plain.includes(":") && !plain.startsWith("[") ? `[${plain}]` : plain;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
}

/** The token of an inspector, for as long as its process lives. */
export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/**
 * The answer to a request that no page of this inspector has sent, but another page that makes a browser send it. Its
 * Origin says so, or it lacks the token, which only a page of the same origin can read. Undefined lets it pass.
 */
export function refusalOfOrigin(request: Request, token: string): Response | undefined {
  const given = request.headers.get("x-holdfast-csrf") ?? "";
  if (isSameOrigin(request) && timingSafeEqual(digest(given), digest(token))) return undefined;
  return text(403, "No page of this inspector sent this: reload it.");
}

/**
 * Behind a proxy the URL may have another scheme and host than the browser knows. So the browser's own word counts, which
 * no page can write: `sec-fetch-site`, where it sends that.
 */
function isSameOrigin(request: Request): boolean {
  const origin = request.headers.get("origin") ?? "";
  const site = request.headers.get("sec-fetch-site");
  if (!URL.canParse(origin)) return false;
  return site === null ? new URL(origin).origin === new URL(request.url).origin : site === "same-origin";
}

function digest(value: string): Buffer {
  return createHash("sha256").update(value).digest();
}
