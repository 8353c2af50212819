/** Drivers of Redisson, which make calls as they are told: a JVM that a test owns, or a part in one that all files share. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { killProcess, own, pauseProcess, resumeProcess } from "../support/owned-processes.js";
import type { Built } from "./build.js";
import { JavaError } from "./calls.js";

/** Options for a quick start and a small process; the tests are no benchmark. */
const OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"];
const LOG_OPTIONS = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"];
const STDERR_KEPT = 16_384;

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly message?: string;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The calls to a driver, and their answers. */
export abstract class Driver {
  readonly #calls = new Map<number, Waiting>();
  readonly #output: Writable;
  #lastId = 0;
  #ended = false;

  constructor(output: Writable, input: Readable) {
    this.#output = output;
    output.on("error", () => {}); // the JVM was killed; its end rejects the calls
    createInterface({ input }).on("line", (line) => this.#answer(JSON.parse(line) as Reply));
  }

  /** What the JVM has said besides its answers. */
  protected abstract readonly log: string;

  /** Makes a call. Rejects with a `JavaError`, or if the JVM ends before the answer. */
  call<T>(call: Readonly<Record<string, unknown>>): Promise<T> {
    if (this.#ended) return Promise.reject(this.#end());
    const id = ++this.#lastId;
    return new Promise<unknown>((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#output.write(`${JSON.stringify({ ...call, id })}\n`);
    }) as Promise<T>;
  }

  protected end(): void {
    this.#ended = true;
    for (const { reject } of this.#calls.values()) reject(this.#end());
    this.#calls.clear();
  }

  #end(): Error {
    return new Error(`the JVM has ended\n${this.log}`);
  }

  #answer({ id, value, error, message = "" }: Reply): void {
    const waiting = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(new JavaError(error, message));
  }
}

/** Owns the process, so a test may kill and pause it. */
export class Jvm extends Driver {
  readonly #child: ChildProcessWithoutNullStreams;
  protected log = "";

  constructor(built: Built) {
    if ("missing" in built) throw new Error(built.missing);
    const main = ["-cp", built.classpath, "holdfast.interop.Driver"];
    const child = spawn("java", [...OPTIONS, ...LOG_OPTIONS, ...main]);
    super(child.stdin, child.stdout);
    this.#child = child;
    own(child);
    child.stderr.on("data", (chunk: Buffer) => {
      this.log = (this.log + chunk.toString()).slice(-STDERR_KEPT);
    });
    child.on("error", (error) => {
      this.log = error.message;
      this.end();
    });
    child.once("close", () => this.end());
  }

  /** Keeps this process alive until the JVM has ended, which a forgotten one must not. */
  ref(): void {
    this.#child.ref();
  }

  /** SIGKILL. */
  kill(): Promise<void> {
    return killProcess(this.#child);
  }

  /** SIGSTOP. */
  pause(): void {
    pauseProcess(this.#child);
  }

  /** SIGCONT. */
  resume(): void {
    resumeProcess(this.#child);
  }
}

/** A part in a shared JVM, with Redisson clients and threads of its own. */
export class SharedJvm extends Driver {
  readonly #socket: Socket;
  protected readonly log = "It was the one that all test files share.";

  /** @param port to which the JVM has answered the call `listen` */
  constructor(port: number) {
    const socket = connect(port, "127.0.0.1").setNoDelay();
    super(socket, socket);
    this.#socket = socket;
    socket.once("close", () => this.end());
  }

  /** Shuts its clients down. */
  async close(): Promise<void> {
    const closed = this.#socket.closed || once(this.#socket, "close");
    this.#socket.end();
    await closed;
  }
}
