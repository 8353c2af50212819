/**
 * Faults of a proxy that strike single commands. A test arms a fault, a matching command claims it, and it strikes when
 * the damage is done. This module knows nothing of sockets.
 */

/** Says whether a command matches: `command` has its words, the name in capitals. */
export type Matcher = (command: readonly string[]) => boolean;

/** Matches commands by their name, in any case: `named("EVAL", "EVALSHA")`. */
export function named(...names: string[]): Matcher {
  const wanted = new Set(names.map((name) => name.toUpperCase()));
  return (command) => wanted.has(command[0] ?? "");
}

export const anyCommand: Matcher = () => true;

export interface Fault {
  /** How often the fault has struck so far. */
  readonly hits: number;
  /** Resolves when the fault has struck once. */
  readonly fired: Promise<void>;
  /** Resolves when the fault has struck as often as it was asked to. */
  readonly done: Promise<void>;
  /** Disarms the fault: only commands that have claimed it by now are still struck. */
  cancel(): void;
}

export interface HeldRequest extends Fault {
  /** The withheld command; undefined until one was caught. */
  readonly command: readonly string[] | undefined;
  /**
   * Sends the withheld bytes to the server on their old connection, like a packet that was stuck in the network. If no
   * command has been caught yet, waits for one. Resolves with the server's raw reply, as text, after the execution.
   */
  deliver(): Promise<string>;
}

export type FaultKind = "cut" | "drop" | "hold";

export class ArmedFault implements Fault {
  readonly kind: FaultKind;
  readonly fired: Promise<void>;
  readonly done: Promise<void>;
  hits = 0;
  readonly #match: Matcher;
  readonly #times: number;
  #left: number;
  #onFired: () => void = () => {};
  #onDone: () => void = () => {};

  constructor(kind: FaultKind, match: Matcher, times: number) {
    this.kind = kind;
    this.#match = match;
    this.#times = times;
    this.#left = times;
    this.fired = new Promise((resolve) => {
      this.#onFired = resolve;
    });
    this.done = new Promise((resolve) => {
      this.#onDone = resolve;
    });
  }

  /** True if the fault takes this command, which uses up one strike. */
  claim(command: readonly string[]): boolean {
    if (this.#left <= 0 || !this.#match(command)) return false;
    this.#left--;
    return true;
  }

  /** Gives a claim back, because its command was lost in another way. */
  unclaim(): void {
    this.#left++;
  }

  /** Called when the damage is done. */
  strike(): void {
    this.hits++;
    this.#onFired();
    if (this.hits >= this.#times) this.#onDone();
  }

  cancel(): void {
    this.#left = Number.NEGATIVE_INFINITY;
  }
}

/** The fault that withholds one command until it is delivered. */
export class ArmedHold extends ArmedFault implements HeldRequest {
  command: readonly string[] | undefined;
  #send: (() => Promise<string>) | undefined;

  constructor(match: Matcher) {
    super("hold", match, 1);
  }

  /** Called by the connection that caught the command; `send` puts the command on its old connection. */
  keep(command: readonly string[], send: () => Promise<string>): void {
    this.command = command;
    this.#send = send;
  }

  async deliver(): Promise<string> {
    await this.fired;
    const send = this.#send;
    if (send === undefined) throw new Error("this request has been delivered already");
    this.#send = undefined;
    return send();
  }
}

/** What a proxy tells its connections. */
export interface ProxyRules {
  /** True while all bytes are swallowed. */
  isSilent(): boolean;
  /** Called once for each command of a client; returns the fault that strikes it, if any. */
  onRequest(connection: number, command: readonly string[]): ArmedFault | undefined;
  /** Milliseconds by which the reply to this command is delayed; without a command, a push. */
  delayOf(command: readonly string[] | undefined): number;
}
