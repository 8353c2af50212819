/**
 * A Node process of a test's own that holds locks, stalls, and can be paused or killed. The test sends it requests;
 * the other side is worker-child.mjs. Owns the process.
 */
import { type ChildProcess, fork } from "node:child_process";
import { isAlive, own, pauseProcess, resumeProcess } from "./owned-processes.js";

export interface WorkerOptions {
  /** Options of node itself. Default none, even if this process has some. */
  readonly execArgv?: readonly string[];
}

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerMessage {
  readonly type: string;
  readonly payload: unknown;
}

type FromChild =
  | { readonly kind: "ready" }
  | ({ readonly kind: "event" } & WorkerMessage)
  | { readonly kind: "reply"; readonly id: number; readonly value: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly error: { readonly message: string } };

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

const STDERR_KEPT = 65_536;

/** Runs `file`, an ES module that calls `serve`, and resolves when it has called that. */
export async function startWorker(file: URL | string, options: WorkerOptions = {}): Promise<Worker> {
  const child = fork(file, [], {
    execArgv: [...(options.execArgv ?? [])],
    serialization: "advanced", // bigint, Map, Error
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  const worker = new Worker(child);
  await worker.ready;
  return worker;
}

export class Worker {
  /** Resolves when the process has ended and all its output is read. */
  readonly exited: Promise<WorkerExit>;
  /** Resolves when the child serves; rejects if it ends before. */
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #requests = new Map<number, Waiting>();
  readonly #listeners = new Set<(message: WorkerMessage) => void>();
  #lastId = 0;
  #stderr = "";
  #ended: WorkerExit | undefined;

  /** Takes over a process with an IPC channel; `startWorker` makes one. */
  constructor(child: ChildProcess) {
    this.#child = child;
    own(child);
    child.on("error", (error) => {
      this.#stderr += `${error.message}\n`;
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString()).slice(-STDERR_KEPT);
    });
    this.exited = new Promise((resolve) => {
      child.once("close", (code, signal) => resolve(this.#onEnd({ code, signal })));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#requests.set(0, { resolve: () => resolve(), reject });
    });
    child.on("message", (message) => this.#onMessage(message as FromChild));
  }

  /**
   * Runs the child's handler of that name and resolves with its result. Rejects with what the handler throws (name,
   * message, code), or with the worker's stderr if the worker ends first or has already ended.
   */
  request<T = unknown>(type: string, payload?: unknown): Promise<T> {
    if (this.#ended !== undefined) return Promise.reject(this.#endError(`request "${type}"`));
    const id = ++this.#lastId;
    return new Promise<T>((resolve, reject) => {
      this.#requests.set(id, { resolve: (value) => resolve(value as T), reject });
      // If the channel is closing, the child's "close" event follows and rejects this with the whole stderr.
      if (this.#child.connected) this.#child.send({ id, type, payload }, () => {});
    });
  }

  /** Calls `listener` with every message that the child emits. Returns a function that stops this. */
  on(listener: (message: WorkerMessage) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The payload of the next message of that type. Call it before the child can have sent that message. */
  next<T = unknown>(type: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const off = this.on((message) => {
        if (message.type !== type) return;
        off();
        resolve(message.payload as T);
      });
      void this.exited.then(() => reject(this.#endError(`message "${type}"`)));
    });
  }

  /** Sends a signal and resolves when the process has ended; SIGKILL also ends a paused process. */
  kill(signal: NodeJS.Signals = "SIGKILL"): Promise<WorkerExit> {
    this.#child.ref();
    if (isAlive(this.#child)) this.#child.kill(signal);
    return this.exited;
  }

  /** SIGSTOP: its event loop and its timers stand still, its connections stay open. */
  pause(): void {
    pauseProcess(this.#child);
  }

  /** SIGCONT. */
  resume(): void {
    resumeProcess(this.#child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #onMessage(message: FromChild): void {
    if (message.kind === "event") {
      const { type, payload } = message;
      for (const listener of this.#listeners) listener({ type, payload });
      return;
    }
    const id = message.kind === "ready" ? 0 : message.id;
    const waiting = this.#requests.get(id);
    this.#requests.delete(id);
    if (message.kind === "failure")
      waiting?.reject(Object.assign(new Error(message.error.message), message.error));
    else waiting?.resolve(message.kind === "reply" ? message.value : undefined);
  }

  #onEnd(exit: WorkerExit): WorkerExit {
    this.#ended = exit;
    for (const waiting of this.#requests.values()) waiting.reject(this.#endError("a request"));
    this.#requests.clear();
    return exit;
  }

  #endError(what: string): Error {
    const { code, signal } = this.#ended ?? {};
    const how = signal ? `by ${signal}` : `with code ${code ?? "unknown"}`;
    return new Error(`${what}: the worker ended ${how}\n${this.#stderr}`);
  }
}
