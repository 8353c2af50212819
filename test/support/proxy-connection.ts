/**
 * One client's connection through a fault proxy: two sockets, commands in one direction and replies in the other. It
 * carries out what the rules of its proxy say, and decides nothing itself.
 *
 * A fault strikes one command only. Replies to earlier commands still reach the client. Later commands of this client do
 * not reach the server, except after a cut reply, because they may have been sent already.
 */
import { connect, type Socket } from "node:net";
import { DelayLine } from "./delay-line.js";
import { sendLate } from "./late-request.js";
import { type ArmedFault, ArmedHold, type ProxyRules } from "./proxy-faults.js";
import { ReplyQueue, startsStream, type Unanswered } from "./proxy-replies.js";
import { decodeCommand, FrameReader } from "./resp.js";

interface Pending extends Unanswered {
  readonly fault: ArmedFault | undefined;
}

export class ProxyConnection {
  readonly id: number;
  /** Resolves when both sockets are closed. */
  readonly closed: Promise<void>;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #rules: ProxyRules;
  readonly #requests = new FrameReader();
  readonly #replies = new FrameReader();
  readonly #pending = new ReplyQueue<Pending>();
  /** Everything that goes to the client, also the end of the connection. */
  readonly #out = new DelayLine();
  /** Runs once all commands that were sent have been answered. */
  #afterLast: (() => void) | undefined;
  /** The client is about to be cut off: bytes that it still sends are ignored. */
  #severed = false;
  /** The client is cut off or gone: bytes that the server still sends are ignored. */
  #over = false;
  #onCut: () => void = () => {};
  /** A request is withheld: the connection to the server stays open without the client. */
  #holding = false;
  /** Bytes are passed on unread. */
  #raw = false;
  /** Bytes of this connection were lost. */
  #tainted = false;

  constructor(id: number, client: Socket, target: { host: string; port: number }, rules: ProxyRules) {
    this.id = id;
    this.#client = client;
    this.#rules = rules;
    this.#server = connect({ host: target.host, port: target.port, noDelay: true });
    client.setNoDelay(true);
    this.closed = Promise.all([client, this.#server].map(closing)).then(() => {});
    client.on("data", (chunk) => this.#fromClient(chunk));
    client.once("close", () => this.#clientClosed());
    this.#server.on("data", (chunk) => this.#fromServer(chunk));
    this.#server.once("close", (failed) => this.#serverClosed(failed));
  }

  /** Resets the client now. The connection to the server is closed too, unless a withheld request needs it. */
  reset(): void {
    this.#severed = true;
    this.#out.clear();
    this.#runAfterLast();
    this.#client.resetAndDestroy();
    if (!this.#holding) this.#server.destroy();
  }

  /** Ends both sides for good. */
  destroy(): void {
    this.reset();
    this.#server.destroy();
  }

  /** Stops reading both sides: the network stands still, and loses nothing. */
  stall(): void {
    this.#client.pause();
    this.#server.pause();
  }

  /**
   * Ends stall, delays and silence. Delayed answers go out at once. A connection that lost bytes is reset, because TCP
   * never continues after a gap.
   */
  restore(): void {
    if (this.#tainted && !this.#holding) this.reset();
    this.#out.flush();
    this.#client.resume();
    this.#server.resume();
  }

  #fromClient(chunk: Buffer): void {
    for (const frame of this.#raw ? [chunk] : this.#requests.push(chunk)) {
      if (this.#raw || this.#severed) this.#forward(frame);
      else this.#onCommand(frame, decodeCommand(frame));
    }
    if (this.#raw) this.#forward(this.#requests.takeRest());
  }

  #onCommand(frame: Buffer, command: readonly string[]): void {
    const fault = this.#rules.onRequest(this.id, command);
    if (fault instanceof ArmedHold) this.#sever(() => this.#hold(fault, frame, command));
    else if (fault?.kind === "drop") this.#sever(() => this.#cutOff(fault));
    else {
      this.#pending.add({ command, fault, replies: 1 });
      this.#raw = startsStream(command);
      this.#forward(frame);
    }
  }

  #forward(bytes: Buffer): void {
    if (this.#rules.isSilent()) this.#tainted = true;
    else if (!this.#severed) this.#server.write(bytes);
  }

  #fromServer(chunk: Buffer): void {
    if (this.#rules.isSilent() && !this.#severed) this.#tainted = true;
    else if (this.#raw) this.#toClient(Buffer.concat([this.#replies.takeRest(), chunk]), undefined);
    else for (const frame of this.#replies.push(chunk)) this.#onReply(frame);
  }

  #onReply(frame: Buffer): void {
    const answered = this.#pending.match(frame);
    const entry = answered?.entry;
    if (this.#over) return;
    if (entry?.fault !== undefined) this.#cutOff(entry.fault);
    else this.#toClient(frame, entry?.command);
    if (answered?.last && this.#pending.waiting.length === 0) this.#runAfterLast();
  }

  #toClient(bytes: Buffer, command: readonly string[] | undefined): void {
    this.#out.push(this.#rules.delayOf(command), () => {
      if (!this.#client.destroyed) this.#client.write(bytes);
    });
  }

  /** Ignores the client from now on, and runs `then` when all its earlier commands have been answered. */
  #sever(then: () => void): void {
    this.#severed = true;
    this.#afterLast = then;
    if (this.#pending.waiting.length === 0) this.#runAfterLast();
  }

  #runAfterLast(): void {
    const action = this.#afterLast;
    this.#afterLast = undefined;
    action?.();
  }

  /** Resets the client, after everything that was still to be sent to it. */
  #cutOff(fault: ArmedFault): void {
    this.#severed = true;
    this.#over = true;
    this.#onCut = () => fault.strike();
    this.#out.push(0, () => this.#client.resetAndDestroy());
  }

  /** Resets the client but keeps the connection to the server, for the withheld bytes. */
  #hold(fault: ArmedHold, frame: Buffer, command: readonly string[]): void {
    this.#holding = true;
    fault.keep(command, () => sendLate(this.#server, frame, command));
    this.#cutOff(fault);
  }

  #clientClosed(): void {
    this.#severed = true;
    this.#runAfterLast();
    this.#onCut();
    if (this.#holding) return;
    if (this.#rules.isSilent()) {
      this.#tainted = true; // in a black hole the other side does not notice
      return;
    }
    this.#over = true;
    this.#out.clear();
    for (const { fault } of this.#pending.waiting) fault?.unclaim();
    this.#server.end(); // not destroyed, because the server must read all that was sent
  }

  #serverClosed(failed: boolean): void {
    if (this.#rules.isSilent() && !this.#severed) {
      this.#tainted = true;
      return;
    }
    this.#runAfterLast();
    this.#out.push(0, () => (failed ? this.#client.resetAndDestroy() : this.#client.end()));
  }
}

/** Resolves when the socket is closed. "close" follows each error, except that of a reset that came too late. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on("error", (error: NodeJS.ErrnoException) => error.syscall === "reset" && resolve());
    socket.once("close", () => resolve());
  });
}
