/**
 * Faults of a proxy that strike single commands: armed by a test, claimed by a command that matches, and struck when
 * the damage is done. Knows nothing of sockets.
 */

/** Says whether a command is meant: its words, the name in capitals. */
export type Matcher = (command: readonly string[]) => boolean;

/** Matches commands by their name, in any case: `named("EVAL", "EVALSHA")`. */
export function named(...names: string[]): Matcher {
  const wanted = new Set(names.map((name) => name.toUpperCase()));
  return (command) => wanted.has(command[0] ?? "");
}

export const anyCommand: Matcher = () => true;

export interface Fault {
  /** How often it has struck so far. */
  readonly hits: number;
  /** Resolves when it has struck once. */
  readonly fired: Promise<void>;
  /** Resolves when it has struck as often as it was asked to. */
  readonly done: Promise<void>;
  /** Takes it back: it strikes no command that has not been claimed by now. */
  cancel(): void;
}

export interface HeldRequest extends Fault {
  /** The command that is withheld; undefined until one was caught. */
  readonly command: readonly string[] | undefined;
  /**
   * Sends the withheld bytes to the server, on their old connection, as a packet that was stuck in the network; waits
   * for one to be caught if need be. Resolves with the server's raw reply, as text, when that has been executed.
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

  /** True if the fault takes this command; it then has one strike less to give. */
  claim(command: readonly string[]): boolean {
    if (this.#left <= 0 || !this.#match(command)) return false;
    this.#left--;
    return true;
  }

  /** Gives a claim back, of a command that was lost in another way. */
  unclaim(): void {
    this.#left++;
  }

  /** The damage is done. */
  strike(): void {
    this.hits++;
    this.#onFired();
    if (this.hits >= this.#times) this.#onDone();
  }

  cancel(): void {
    this.#left = Number.NEGATIVE_INFINITY;
  }
}

/** The fault that keeps one command back until it is delivered. */
export class ArmedHold extends ArmedFault implements HeldRequest {
  command: readonly string[] | undefined;
  #send: (() => Promise<string>) | undefined;

  constructor(match: Matcher) {
    super("hold", match, 1);
  }

  /** Called by the connection that caught the command; `send` puts it on the old wire. */
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
  /** Called once for each command that a client sent; gives the fault that strikes it, if any. */
  onRequest(connection: number, command: readonly string[]): ArmedFault | undefined;
  /** How long the answer to this command is held back; without one, a push. */
  delayOf(command: readonly string[] | undefined): number;
}
