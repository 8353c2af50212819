/**
 * One command to the server: sent, and sent again after failures that may pass, until it is answered or its time is up. A
 * subclass says what is sent and what an answer means; it may begin the command again after it has ended.
 *
 * Each answer belongs to its own sending: what comes after the command has ended is late, whatever has begun since.
 *
 * The members of a base class of many, as this, are private to the compiler alone: V8 finds a `#name` by a cache that is slow
 * once it has met more than four classes.
 */
import { type Instant, instant } from "../base/clock.js";
import { ClientClosedError, isLockError, type LockError } from "../base/errors.js";
import type { Due } from "../base/timer-heap.js";
import { type AnyScript, isReplyOf, type ScriptCall } from "../scripts/script.js";
import type { CommandRunner } from "./command-runner.js";
import { finalError, forbiddenKeys, forbidsKey, isMissingScript, isReply, scrubbed } from "./failures.js";
import type { Server } from "./servers.js";

/** Milliseconds before a failed command is sent again, the first time; doubled up to the longest. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/** When a command was begun that was not. */
const NEVER: Instant = { mono: 0, wall: 0 };

/** What is said of a reply that nobody can read, as if the server had said so. */
function strange(): Error {
  return Object.assign(new Error("the reply is not one that this script gives"), { name: "ReplyError" });
}

/** A command that is not a script's call, but may be repeated like one. */
export interface PlainCommand {
  /** The script that it runs with these keys, if it does. */
  readonly script?: AnyScript;
  readonly keys?: readonly string[];
  /** Sends it once. */
  readonly send: () => Promise<unknown>;
}

export abstract class Command implements Due {
  /** When its time is up. */
  dueAt = 0;
  /** Its place among the commands that are open. */
  index = -1;
  /** When it was begun: what the server grants to it counts from then, and what answers an earlier beginning is late. */
  sentAt: Instant = NEVER;
  /** It goes on though its time was up. */
  protected isLeftover = false;
  protected readonly runner: CommandRunner;
  /** For errors; empty if it concerns several locks. */
  readonly lockName: string;
  /** Of a try: the name in the server's queue, or in what a release grants. */
  wireId: string | undefined;
  /** ioredis has the command. */
  private inFlight = false;
  /** The server that owes the answer. */
  server: Server | undefined;
  /** When that was asked first, in monotonic milliseconds. */
  askedAt = 0;
  /** Why its last sending failed. */
  private cause: Error | undefined;
  /** Milliseconds until it is sent again if it fails. */
  private pause = FIRST_PAUSE;
  /** Keeps it from being sent again. */
  private cancelPause: (() => void) | undefined;
  /** The keys of what was sent last. */
  private keys: readonly string[] | undefined;

  constructor(runner: CommandRunner, lockName: string) {
    this.runner = runner;
    this.lockName = lockName;
  }

  /** What is sent; asked anew for each sending. */
  protected abstract request(): ScriptCall | PlainCommand;

  /** The server has answered, just `now`. What this throws the command fails with. */
  protected abstract answered(reply: unknown, now: Instant): void;

  /** The server has refused for good, the time is up without an answer (UNAVAILABLE), or the client is closed. */
  protected abstract failed(error: unknown): void;

  /** An answer came after the command had ended; `wireId`: the one that was sent. */
  protected late(_reply: unknown, _wireId: string | undefined): void {
    // Most commands have told their caller that nothing is known.
  }

  /** The connection was lost: the server may run the command a second time. */
  unsure(): void {
    // Most commands may run any number of times.
  }

  /** Whether the command goes on after its time is up, until it is answered; called after each time-out. */
  protected goesOn(): boolean {
    return false;
  }

  /** The error of a command whose time is up; its cause is what its last sending failed with, if it did. */
  protected unavailable(): unknown {
    return this.runner.unavailable(this.lockName, this.cause);
  }

  get isOpen(): boolean {
    return this.index >= 0;
  }

  /** Sends it until it is answered, fails for good, or `within` milliseconds are over. */
  begin(within: number = this.runner.commandTimeout, now: Instant = instant(this.runner.clock)): void {
    const { alive, isClosed, open } = this.runner;
    this.sentAt = now;
    this.isLeftover = false;
    this.cause = undefined;
    this.pause = FIRST_PAUSE;
    alive.need();
    open.put(this, now.mono + within);
    this.send();
    // What close() itself causes is sent once, and not waited for.
    if (isClosed) this.close();
  }

  /** Sends the command, even while an earlier sending is unanswered: it may run twice without harm. */
  send(anew = false): void {
    if (!this.isOpen) return;
    const { sentAt } = this;
    const { open, prepared, sender, servers } = this.runner;
    try {
      const call = this.request();
      if (call.script) {
        if (!prepared) return this.sendPrepared(sentAt);
        this.runner.sent++;
      }
      this.inFlight = true;
      this.keys = call.keys;
      const server = servers.of(call.keys?.[0]);
      if (server !== this.server) this.askedAt = this.server ? this.runner.clock.mono() : sentAt.mono;
      this.server = server;
      const answer = "send" in call ? call.send() : sender.send(call, open.size === 1, anew);
      const { wireId } = this;
      const { script } = call;
      answer.then(
        (reply) => this.replied(sentAt, server, wireId, reply, script),
        (error: unknown) => this.rejected(sentAt, error, script),
      );
    } catch (error) {
      // The call cannot be sent, by a mistake of the caller. Thrown in a timer it would end the process.
      this.failWith(error);
    }
  }

  /** The time is up, the outcome unknown. */
  expire(): void {
    const { server } = this;
    const { alive, cleanUp, clock, commandTimeout, open, servers } = this.runner;
    // A refusal was an answer, if one that is of no use.
    if (this.inFlight) server?.gaveUp(this.askedAt);
    servers.resetSilent();
    if (this.goesOn()) {
      if (!this.isLeftover) alive.release();
      this.isLeftover = true;
      open.put(this, clock.mono() + commandTimeout);
      // ioredis keeps the command until the connection breaks, and then sends it again or rejects it, so further sendings
      // would pile up. But if the key has another master by now, the command has to go there.
      if (servers.of(this.keys?.[0]) !== server) this.send();
      return;
    }
    const inFlight = this.inFlight;
    if (!this.stop()) return;
    if (inFlight) cleanUp.abandoned.add(this);
    this.failed(this.unavailable());
  }

  /** The client is closed. */
  close(): void {
    this.failWith(new ClientClosedError(this.lockName));
  }

  /** Ends the command: an answer that comes is late. False if it had ended before. */
  stop(): boolean {
    if (!this.isOpen) return false;
    this.cancelPause?.();
    this.server = undefined;
    const { alive, onIdle, open } = this.runner;
    open.remove(this);
    if (onIdle.length > 0 && !open.first) for (const callback of onIdle.splice(0)) callback();
    if (!this.isLeftover) alive.release();
    return true;
  }

  /** Whether it is open since then. */
  private isBegun(sentAt: Instant): boolean {
    return this.isOpen && sentAt === this.sentAt;
  }

  /** It waits until it is known how releases are announced. */
  private sendPrepared(sentAt: Instant): void {
    this.runner.prepare().then(
      () => {
        if (this.isBegun(sentAt)) this.send();
      },
      (error: unknown) => this.rejected(sentAt, error),
    );
  }

  private replied(
    sentAt: Instant,
    server: Server,
    wireId: string | undefined,
    reply: unknown,
    script: AnyScript | undefined,
  ): void {
    const now = instant(this.runner.clock);
    server.answered(now.mono);
    // A proxy, or a server that is not Redis, may answer anything.
    if (script && !isReplyOf(script, reply)) return this.rejected(sentAt, strange());
    if (!this.isBegun(sentAt)) {
      this.runner.cleanUp.abandoned.delete(this);
      return this.late(reply, wireId);
    }
    this.stop();
    try {
      this.answered(reply, now);
    } catch (error) {
      this.failed(isLockError(error) ? error : this.runner.unavailable(this.lockName, strange()));
    }
  }

  private rejected(sentAt: Instant, error: unknown, script?: AnyScript): void {
    if (!this.isBegun(sentAt)) {
      this.runner.cleanUp.abandoned.delete(this);
      return;
    }
    this.inFlight = false;
    if (isMissingScript(error)) return this.send(true);
    const final = this.finalError(error, script);
    if (final && this.keys && forbidsKey(error)) return this.nameKeys(sentAt, error, this.keys);
    if (final) return this.failWith(final);
    const { clock, servers } = this.runner;
    this.cause = scrubbed(error);
    if (isReply(error)) servers.note(this.cause, this.server);
    this.cancelPause?.();
    this.cancelPause = clock.after(this.pause, () => this.send());
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }

  /** The user lacks rights for good; the error tells which keys are forbidden. */
  private nameKeys(sentAt: Instant, error: unknown, keys: readonly string[]): void {
    void forbiddenKeys(this.runner.connection, keys).then((forbidden) => {
      if (this.isBegun(sentAt)) this.failWith(this.finalError(error, undefined, forbidden) as LockError);
    });
  }

  private finalError(
    error: unknown,
    script: AnyScript | undefined,
    forbidden?: readonly string[],
  ): LockError | undefined {
    return finalError(error, this.lockName, this.runner.isCluster, script, forbidden);
  }

  private failWith(error: unknown): void {
    if (this.stop()) this.failed(error);
  }
}
