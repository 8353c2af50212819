/**
 * The requests of one name in this process, in their order. By the standard a shared request may ask Redis if no
 * exclusive one goes before it, an exclusive request if none at all does. Between processes Redis decides.
 *
 * A request that no other request of this process blocks tries once, so that it is soon known whether it is held or
 * waits. A request that cannot be granted yet waits at once, so that it is the successor of the hold before it.
 * Exclusive requests wait one behind the other: the client keeps their order. A request that has waited once, in either
 * queue, goes on asking when Redis gives no answer.
 */
import { setTimeout } from "../../base/platform.js";
import {
  type Hold,
  isLockError,
  type Lock,
  type LockClient,
  Owner,
  type ReadWriteLock,
} from "../../index.js";
import { force } from "../shared/kinds.js";
import type { WebLockRequest } from "./request.js";
import type { StealNotices } from "./steal-notices.js";

/** Milliseconds until Redis, which has given no answer, is asked again. */
const PAUSE = 250;

export interface QueueParts {
  readonly client: LockClient;
  readonly notices: StealNotices;
  /** Called when the queue has no requests any more. */
  readonly idle: () => void;
}

/** What a callback came to. */
type Outcome = { readonly value: unknown } | { readonly error: unknown };

function isWaiting({ phase }: WebLockRequest): boolean {
  return phase === "waiting";
}

/**
 * Whether a request surely has or awaits what keeps a later one from its lock, whatever Redis says. Of a request with
 * `ifAvailable` that is not known yet.
 */
function excludes({ mode, ifAvailable }: WebLockRequest, later: WebLockRequest): boolean {
  return !ifAvailable && (mode === "exclusive" || later.mode === "exclusive");
}

/** Whether a request may ask Redis now, behind these. */
function mayAsk({ mode, isPlain }: WebLockRequest, before: readonly WebLockRequest[]): boolean {
  if (mode === "shared") return before.every((earlier) => earlier.mode === "shared");
  if (!isPlain) return before.length === 0;
  return before.every((earlier) => earlier.mode === "exclusive" && earlier.isPlain && isWaiting(earlier));
}

export class RequestQueue {
  /** The requests that hold the lock, in the order of their grants. */
  readonly held: Set<WebLockRequest> = new Set();
  readonly pending: WebLockRequest[] = [];
  readonly #parts: QueueParts;
  readonly #name: string;
  readonly #lock: ReadWriteLock;
  /** A request has failed, and none was granted since: perhaps Redis gives no answer. */
  #isUnsure = false;
  #isProceeding = false;
  #isDue = false;

  /** @throws TypeError, RangeError for a name that no lock can have */
  constructor(name: string, parts: QueueParts) {
    this.#name = name;
    this.#parts = parts;
    this.#lock = parts.client.getReadWriteLock(name);
  }

  add(request: WebLockRequest): void {
    // A request that steals goes before all others, but behind those that steal already.
    const at = request.steal ? this.pending.findIndex(({ steal }) => !steal) : -1;
    this.pending.splice(at < 0 ? this.pending.length : at, 0, request);
    request.onAbort(() => this.#fail(request, request.signal?.reason));
    this.#proceed();
  }

  /** Makes all requests ask that may ask now. */
  #proceed(): void {
    this.#isDue = true;
    if (this.#isProceeding) return;
    this.#isProceeding = true;
    while (this.#isDue) this.#look();
    this.#isProceeding = false;
  }

  #look(): void {
    this.#isDue = false;
    const before: WebLockRequest[] = [];
    for (const request of [...this.pending]) {
      if (request.phase === "queued") {
        const isExcluded = before.some((earlier) => excludes(earlier, request));
        if (request.ifAvailable && isExcluded) void this.#refuse(request);
        else if (mayAsk(request, before)) this.#begin(request, before.some(isWaiting));
        else request.hasWaited = request.isPlain;
      }
      if (request.phase !== "over") before.push(request);
    }
  }

  #begin(request: WebLockRequest, behind: boolean): void {
    const [holder] = this.held;
    const isTaken = holder && (holder.mode === "exclusive" || request.mode === "exclusive");
    // A call of the client that waits ends if Redis gives no answer, and another one would come behind those that wait by
    // then. So nobody waits behind this request until Redis has answered it.
    const waits = behind || (isTaken && !(request.hasWaited && this.#isUnsure));
    if (request.ifAvailable && isTaken) void this.#refuse(request);
    else if (request.isPlain && waits) void request.within(() => this.#wait(request));
    else {
      request.enter("trying");
      void request.within(() => (request.steal ? this.#steal(request) : this.#try(request)));
    }
  }

  async #try(request: WebLockRequest): Promise<void> {
    if ((await this.#ask(request, 0)) || request.phase === "over") return;
    if (request.phase === "unanswered") return this.#askAgain(request);
    if (request.ifAvailable) return this.#refuse(request);
    request.hasWaited = true;
    const work = this.#wait(request);
    // The requests behind this one may wait now, too.
    this.#proceed();
    await work;
  }

  async #wait(request: WebLockRequest): Promise<void> {
    request.enter("waiting");
    if (!(await this.#ask(request, undefined))) await this.#askAgain(request);
  }

  /** Asks until there is an answer. In this phase no exclusive request waits behind this one. */
  async #askAgain(request: WebLockRequest): Promise<void> {
    do await new Promise<void>((resolve) => void setTimeout(resolve, PAUSE).unref());
    while (request.phase === "unanswered" && !(await this.#ask(request, undefined)));
  }

  /** Takes the lock by force, again and again if others are faster. */
  async #steal(request: WebLockRequest): Promise<void> {
    const { client, notices } = this.#parts;
    try {
      let isTaken = await this.#ask(request, 0);
      while (!isTaken) {
        const info = await client.inspect(this.#name);
        const forced = info && force(client, info);
        // Sent right behind the release, before waiters elsewhere have heard of it.
        const asked = this.#ask(request, 0);
        await forced;
        // When somebody has the lock: a holder that looked earlier would take its hold for expired.
        void request.answered.then(() => notices.tell(info?.holders ?? []));
        isTaken = await asked;
      }
    } catch (error) {
      if (!request.hold) this.#fail(request, error);
    }
  }

  /** Ends a request that is not granted and does not wait. */
  async #refuse(request: WebLockRequest): Promise<void> {
    request.enter("over");
    this.#leave(request);
    // The caller gets its promise first.
    await undefined;
    try {
      request.resolve(await request.call(false));
    } catch (error) {
      request.reject(error);
    }
  }

  /**
   * Asks for the lock, for at most `wait` milliseconds. Resolves with false if the request was refused, or is one that
   * waits on without an answer; else with true when the request is over.
   */
  async #ask(request: WebLockRequest, wait: number | undefined): Promise<boolean> {
    const { mode, signal } = request;
    try {
      const side: Lock = mode === "shared" ? this.#lock.readLock() : this.#lock.writeLock();
      // A new owner for each try, so that no request re-enters.
      const options = { owner: new Owner(), signal, wait };
      const outcome = await side.run((hold) => this.#hold(request, hold), options);
      if ("value" in outcome) request.resolve(outcome.value);
      else request.reject(outcome.error);
      this.#release(request);
    } catch (error) {
      if (wait === 0 && !request.hold && isLockError(error, "WAIT_TIMEOUT")) return false;
      if (request.survives(error)) {
        request.enter("unanswered");
        return false;
      }
      if (request.hold) this.#lose(request, error);
      else this.#fail(request, error);
    }
    return true;
  }

  /** The request is granted; resolves when the callback is done. */
  async #hold(request: WebLockRequest, hold: Hold): Promise<Outcome> {
    // The request's signal aborted while the grant was on its way.
    if (request.phase === "over") return { value: undefined };
    request.hold = hold;
    request.enter("held");
    this.#isUnsure = false;
    this.held.add(request);
    this.#parts.notices.begin();
    this.#leave(request);
    hold.signal.addEventListener("abort", () => this.#lose(request, hold.signal.reason), { once: true });
    if (hold.signal.aborted) this.#lose(request, hold.signal.reason);
    try {
      return { value: await request.call(true) };
    } catch (error) {
      return { error };
    }
  }

  /** The lock is another's by now, or nobody's, though the callback may still run. */
  #lose(request: WebLockRequest, cause: unknown): void {
    const message = `the lock "${this.#name}" was stolen or lost otherwise; see cause`;
    request.reject(new DOMException(message, { name: "AbortError", cause }));
    this.#release(request);
  }

  /** The request ends without a call of its callback. A lock that it has is given back by {@link #hold}. */
  #fail(request: WebLockRequest, reason: unknown): void {
    this.#isUnsure = true;
    const at = this.pending.indexOf(request);
    // Whether it has the lock is not known then, so those behind it that would not wait for it get no answer either.
    const isSilence = at >= 0 && !request.isPlain && isLockError(reason, "UNAVAILABLE");
    const behind = isSilence ? this.pending.slice(at + 1) : [];
    const ended = [request, ...behind.filter(({ phase, isPlain }) => phase === "queued" && !isPlain)];
    for (const each of ended) each.reject(reason);
    for (const each of ended) this.#leave(each);
  }

  /** The request does not hold the lock any more. */
  #release(request: WebLockRequest): void {
    if (!this.held.delete(request)) return;
    this.#parts.notices.end();
    this.#proceed();
    this.#checkIdle();
  }

  /** The request is not pending any more. */
  #leave(request: WebLockRequest): void {
    const at = this.pending.indexOf(request);
    if (at < 0) return;
    this.pending.splice(at, 1);
    this.#proceed();
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.pending.length + this.held.size === 0) this.#parts.idle();
  }
}
