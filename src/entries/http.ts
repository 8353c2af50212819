/**
 * Locks in HTTP services: a scope for each request, and what to answer when a lock fails. Frameworks are known by the
 * shape of what they pass, so none of them is imported.
 */
import { AsyncResource } from "node:async_hooks";
import { STATUS_CODES } from "node:http";
import { isLockError } from "../base/errors.js";
import type { LockClient, LockErrorCode } from "../index.js";

/** The part of a response that tells when it is over: Node's `ServerResponse` has it. */
export interface ClosingResponse {
  /** True if the response is over already. */
  readonly closed?: boolean | undefined;
  /** Calls back when the response is over. */
  once(event: "close", listener: () => void): unknown;
}

/** Express and Connect call it for each request. */
export type LockMiddleware = (
  request: unknown,
  response: ClosingResponse,
  next: (error?: unknown) => void,
) => void;

/**
 * Middleware for Express and Connect: each request is one owner, in a `client.scope`. The scope ends when the response
 * closes, sent or broken off. What the request still holds then stays held until its lease ends: use `run`, or
 * `finally`. With a closed client the request fails (CLIENT_CLOSED). Put it behind what parses bodies, since some parsers
 * of multipart bodies lose the scope.
 * @throws TypeError for what is no LockClient
 * @example
 * express().use(lockScope(client));
 */
export function lockScope(client: LockClient): LockMiddleware {
  checkClient(client, "lockScope(client)");
  return (_request, response, next) => openScope(client, response, next);
}

/** Options of {@link lockPlugin}. */
export interface LockPluginOptions {
  /** The client whose locks the requests use. It stays yours to close. */
  client: LockClient;
}

type Done = (error?: Error) => void;
type FastifyHook = (request: object, reply: { readonly raw: ClosingResponse }, done: Done) => void;

/** What {@link lockPlugin} needs of a Fastify instance. */
export interface FastifyLike {
  /** Gives the instance a property. */
  decorate(name: "locks", client: LockClient): unknown;
  /** Has the hook called for each request. */
  addHook(name: "onRequest" | "preValidation", hook: FastifyHook): unknown;
}

/** Fastify calls it by `register`. */
export type LockPlugin = (fastify: FastifyLike, options: LockPluginOptions) => Promise<void>;

/**
 * Plugin for Fastify 5: `fastify.register(lockPlugin, { client })`. Each request of that instance, and of all below it,
 * has the scope of {@link lockScope}. `fastify.locks` is the client.
 * @throws TypeError for what is no LockClient
 * @example
 * await fastify().register(lockPlugin, { client });
 */
export const lockPlugin: LockPlugin = Object.assign(
  (async (fastify, { client }) => {
    checkClient(client, "lockPlugin: the option client");
    const contexts = new WeakMap<object, AsyncResource>();
    fastify.decorate("locks", client);
    fastify.addHook("onRequest", (request, { raw }, next) => {
      openScope(client, raw, (error) => {
        if (error) return next(error as Error);
        contexts.set(request, new AsyncResource("holdfast.request"));
        next();
      });
    });
    // After the body has been read, Fastify goes on in the context of the socket: the scope is entered again.
    fastify.addHook("preValidation", (request, _reply, next) => {
      const context = contexts.get(request);
      if (context) context.runInAsyncScope(() => next());
      else next();
    });
  }) satisfies LockPlugin,
  {
    // Fastify's own marks: not encapsulated, its name, and the versions that it works with.
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "holdfast",
    [Symbol.for("plugin-meta")]: { name: "holdfast", fastify: "5.x" },
  },
);

/** Calls `next` inside a scope that ends with the response, and throws what it throws. */
function openScope(client: LockClient, response: ClosingResponse, next: (error?: unknown) => void): void {
  let thrown: { readonly error: unknown } | undefined;
  const scope = client.scope(async () => {
    const closed = new Promise<void>((resolve) => {
      if (response.closed) resolve();
      else response.once("close", resolve);
    });
    try {
      next();
    } catch (error) {
      thrown = { error };
    }
    await closed;
  });
  scope.catch(next);
  // Were it an error of the scope, next would be called once more.
  if (thrown) throw thrown.error;
}

function checkClient(client: unknown, what: string): void {
  if (typeof (client as LockClient | undefined)?.scope === "function") return;
  throw new TypeError(`${what} must be a LockClient`);
}

interface Answer {
  readonly status: 409 | 500 | 503;
  readonly detail: string;
}

const UNDECIDED = "The service that keeps the locks gave no usable answer. Try again later.";

/** The answers by code. The texts are for strangers, so they name no host, no process and no other holder. */
const ANSWERS: Readonly<Record<LockErrorCode, Answer>> = {
  WAIT_TIMEOUT: { status: 409, detail: "It was in use for as long as this request could wait. Try again." },
  UPGRADE_REFUSED: { status: 409, detail: "The request that wants to change it still reads it." },
  UNAVAILABLE: { status: 503, detail: UNDECIDED },
  QUORUM: { status: 503, detail: UNDECIDED },
  REPLICAS: { status: 503, detail: UNDECIDED },
  CLIENT_CLOSED: { status: 503, detail: "This instance of the service is shutting down. Try again." },
  LOCK_LOST: { status: 500, detail: "It was no longer reserved when the work ended: check what was done." },
  NOT_OWNER: { status: 500, detail: "The request gave back what it did not hold." },
  UNSUPPORTED: { status: 500, detail: "The service that keeps the locks lacks or forbids what is needed." },
  WRONG_DATA: { status: 500, detail: "The name is in use for something other than a lock." },
};

/**
 * 409 for WAIT_TIMEOUT and UPGRADE_REFUSED, 503 for UNAVAILABLE, QUORUM, REPLICAS and CLIENT_CLOSED, 500 for any other
 * LockError, undefined for anything else.
 * @example
 * const answer = (error: unknown) => new Response(null, { status: httpStatusOf(error) ?? 500 });
 */
export function httpStatusOf(error: unknown): 409 | 500 | 503 | undefined {
  return isLockError(error) ? answerOf(error.code).status : undefined;
}

/** A problem of RFC 9457, to be sent as `application/problem+json`. */
export interface LockProblem {
  /** RFC 9457's word for: the status says it all. */
  readonly type: "about:blank";
  /** The phrase of the status: `Conflict`. */
  readonly title: string;
  /** The status, as {@link httpStatusOf} has it. */
  readonly status: 409 | 500 | 503;
  /** A text for strangers, by the error's code. */
  readonly detail: string;
  /** The code of the error. */
  readonly code: LockErrorCode;
  /** The lock's name, as the error has it. */
  readonly lockName: string;
}

/**
 * What to answer for a LockError, undefined for anything else. It has the error's code and lock name, but neither its
 * text nor its cause, which may name hosts and other holders.
 * @example
 * const answer = (error: unknown) => {
 *   const problem = problemOf(error);
 *   return problem && Response.json(problem, { status: problem.status });
 * };
 */
export function problemOf(error: unknown): LockProblem | undefined {
  if (!isLockError(error)) return undefined;
  const { code, lockName } = error;
  const { status, detail } = answerOf(code);
  return { type: "about:blank", title: STATUS_CODES[status] ?? "", status, detail, code, lockName };
}

/** Another copy of the library may have codes that this one does not know. */
function answerOf(code: LockErrorCode): Answer {
  return ANSWERS[code] ?? { status: 500, detail: "A lock failed." };
}
