/** A JVM with the driver, which makes calls to Redisson as it is told. Owns the process. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { isAlive, killProcess, own, pauseProcess, resumeProcess } from "../support/owned-processes.js";
import type { Built } from "./build.js";

/** Options for a quick start and a small process; the tests are no benchmark. */
const OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m"];
const LOG_OPTIONS = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"];
const STDERR_KEPT = 16_384;

export interface Answer<T> {
  readonly value: T;
  /** The end of the call in the JVM, in nanoseconds on the clock of `process.hrtime`. */
  readonly at: bigint;
}

/** An exception of Java. */
export class JavaError extends Error {
  override readonly name = "JavaError";
  /** The full name of its class. */
  readonly javaClass: string;

  constructor(javaClass: string, message: string) {
    super(`${javaClass}: ${message}`);
    this.javaClass = javaClass;
  }
}

interface Reply {
  readonly id: number;
  readonly at: string;
  readonly value?: unknown;
  readonly error?: string;
  readonly message?: string;
}

interface Waiting {
  readonly resolve: (answer: Answer<unknown>) => void;
  readonly reject: (error: Error) => void;
}

export class Jvm {
  readonly version: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #calls = new Map<number, Waiting>();
  #lastId = 0;
  #stderr = "";

  constructor(built: Built) {
    if ("missing" in built) throw new Error(built.missing);
    this.version = built.version;
    const main = ["-cp", built.classpath, "holdfast.interop.Driver"];
    this.#child = spawn("java", [...OPTIONS, ...LOG_OPTIONS, ...main]);
    own(this.#child);
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_KEPT);
    });
    this.#child.stdin.on("error", () => {}); // the JVM was killed; "close" rejects the calls
    this.#child.on("error", (error) => this.#end(error.message));
    this.#child.once("close", () => this.#end(this.#stderr));
    createInterface({ input: this.#child.stdout }).on("line", (line) =>
      this.#answer(JSON.parse(line) as Reply),
    );
  }

  /** The last output to stderr. */
  get log(): string {
    return this.#stderr;
  }

  /** Makes a call. Rejects with a `JavaError`, or if the process ends before the answer. */
  call<T>(call: Readonly<Record<string, unknown>>): Promise<Answer<T>> {
    if (!isAlive(this.#child)) return Promise.reject(new Error(`the JVM has ended\n${this.#stderr}`));
    const id = ++this.#lastId;
    return new Promise<Answer<unknown>>((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ ...call, id })}\n`);
    }) as Promise<Answer<T>>;
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

  #answer({ id, at, value, error, message = "" }: Reply): void {
    const waiting = this.#calls.get(id);
    this.#calls.delete(id);
    if (error === undefined) waiting?.resolve({ value, at: BigInt(at) });
    else waiting?.reject(new JavaError(error, message));
  }

  #end(why: string): void {
    for (const { reject } of this.#calls.values()) reject(new Error(`the JVM has ended\n${why}`));
    this.#calls.clear();
  }
}
