/**
 * MONITOR shows the commands that a server really received from clients, and not what a client meant to send. It shows
 * those of every sender, and each repetition. Commands that scripts call are left out.
 */
import { connect, type Socket } from "node:net";
import { type Endpoint, redisCall } from "./redis-call.js";
import { decode, encodeCommand, FrameReader } from "./resp.js";
import { until } from "./until.js";

export interface CounterOptions {
  /** Returns true for commands that are not counted. */
  readonly leavesOut?: (command: readonly string[]) => boolean;
}

/** Starts to count; commands from here on are seen. */
export async function countCommands(server: Endpoint, options?: CounterOptions): Promise<CommandCounter> {
  const socket = connect({ host: server.host, port: server.port, noDelay: true });
  const counter = new CommandCounter(server, socket, options);
  const auth = server.password === undefined ? [] : [encodeCommand(["AUTH", server.password])];
  socket.write(Buffer.concat([...auth, encodeCommand(["MONITOR"])]));
  try {
    await counter.settle();
    return counter;
  } catch (error) {
    counter.stop();
    throw error;
  }
}

const MARKER = "holdfast-marker";
let markers = 0;

export class CommandCounter {
  readonly #server: Endpoint;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #leavesOut: (command: readonly string[]) => boolean;
  #commands: string[][] = [];
  #lastMarker = 0;

  /** Reads a connection that is in MONITOR mode, or about to be; `countCommands` makes one. */
  constructor(server: Endpoint, socket: Socket, { leavesOut = () => false }: CounterOptions = {}) {
    this.#server = server;
    this.#leavesOut = leavesOut;
    this.#socket = socket;
    socket.on("error", () => {}); // then no marker is ever seen, and `settle` says so
    socket.on("data", (chunk) => {
      for (const frame of this.#reader.push(chunk)) this.#onLine(String(decode(frame)));
    });
    socket.unref();
  }

  /**
   * Resolves when everything that the server has executed by now is counted. It sends a marker (not counted) until one
   * comes back by MONITOR. More than one is needed only while MONITOR itself is still on its way.
   */
  async settle(): Promise<void> {
    const first = markers + 1;
    await until("the counter sees its own marker", async () => {
      if (this.#lastMarker < first) await redisCall(this.#server, ["ECHO", `${MARKER}:${++markers}`]);
      return this.#lastMarker >= first;
    });
  }

  /** The commands so far, names in capitals. Call `settle` first. */
  all(): string[][] {
    return this.#commands.map((command) => [...command]);
  }

  /** How many of the commands have one of these names. Call `settle` first. */
  of(...names: string[]): number {
    const wanted = new Set(names.map((name) => name.toUpperCase()));
    return this.#commands.filter(([name]) => wanted.has(name ?? "")).length;
  }

  /** Starts again from zero; commands that the server has executed by now are not counted later either. */
  async reset(): Promise<void> {
    await this.settle();
    this.#commands = [];
  }

  stop(): void {
    this.#socket.destroy();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    return Promise.resolve();
  }

  #onLine(line: string): void {
    const match = /^\d+\.\d+ \[\d+ (\S+)\] (".*)$/.exec(line);
    if (match === null || match[1] === "lua") return;
    const command = parseMonitored(match[2] ?? "");
    const marker = command[0] === "ECHO" && command[1]?.startsWith(`${MARKER}:`) === true;
    if (marker) this.#lastMarker = Math.max(this.#lastMarker, Number(command[1]?.slice(MARKER.length + 1)));
    else if (!this.#leavesOut(command)) this.#commands.push(command);
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", a: "\x07", b: "\b" };

/** The words of a line of MONITOR, which are quoted and escaped as in C, byte by byte. */
function parseMonitored(line: string): string[] {
  const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, quoted = ""]) => {
    const bytes = quoted.replace(/\\(x[0-9a-f]{2}|.)/g, (_, code: string) => {
      return code.length === 3
        ? String.fromCharCode(Number.parseInt(code.slice(1), 16))
        : (ESCAPES[code] ?? code);
    });
    return Buffer.from(bytes, "latin1").toString("utf8");
  });
  return words.map((word, i) => (i === 0 ? word.toUpperCase() : word));
}
