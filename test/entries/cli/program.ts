/** Runs `holdfast` by its main function in this process, or as a shell does, which costs ten times as much. */
import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { main } from "../../../src/entries/cli/main.js";
import { LockClient, type LockClientOptions } from "../../../src/index.js";
import { forFile, type RedisServer, startRedis, UNHURRIED, until } from "../../support/index.js";
import { own } from "../../support/owned-processes.js";

export const PROGRAM: string = join(fileURLToPath(new URL("../../..", import.meta.url)), "dist/cli.js");

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The program while it runs. */
export class Running {
  readonly ended: Promise<Ended>;
  /** Sends it a signal; to a program in this process only as far as it listens. */
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Leaves it without a reader of what it writes. */
  readonly leave: () => void;
  out = "";
  err = "";

  constructor(
    streams: { stdout: Readable; stderr: Readable },
    kill: (signal: NodeJS.Signals) => void,
    code: Promise<number | null>,
  ) {
    streams.stdout.on("data", (chunk: Buffer) => (this.out += String(chunk)));
    streams.stderr.on("data", (chunk: Buffer) => (this.err += String(chunk)));
    this.kill = kill;
    this.leave = () => streams.stdout.destroy();
    this.ended = code.then((code) => ({ code, out: this.out, err: this.err }));
  }

  /** Resolves when the program has written a match of the text. */
  async says(text: RegExp): Promise<void> {
    await until(`it says ${text}`, () => text.test(this.out + this.err));
  }
}

function runHere(args: readonly string[], env: NodeJS.ProcessEnv, isTTY: boolean): Running {
  const stream = () => Object.assign(new PassThrough(), { isTTY });
  const streams = { stdin: stream().end(), stdout: stream(), stderr: stream() };
  const program = Object.assign(new EventEmitter(), streams, { env });
  const code = main(args, program).then(async (code) => {
    // What has been written last reaches its reader by then.
    await new Promise(setImmediate);
    return code;
  });
  return new Running(streams, (signal) => program.emit(signal, signal), code);
}

/** A server of a test file, the program on it, and clients beside it. */
export interface Site {
  readonly server: RedisServer;
  /** In a process, for what a shell or a command of its own sees. */
  start(...args: string[]): Running;
  run(...args: string[]): Promise<Ended>;
  /** In this process, for what it answers; with an empty stdin. */
  begin(...args: string[]): Running;
  main(...args: string[]): Promise<Ended>;
  /** What it writes in this process to what it takes for a terminal. */
  shown(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string>;
  /** A client that others can see after two seconds, and that loses no hold if it stalls for four. */
  client(options?: LockClientOptions): LockClient;
}

export async function useSite(): Promise<Site> {
  const server = await forFile(startRedis());
  const clients: LockClient[] = [];
  const running: Running[] = [];
  const env = { HOLDFAST_URL: server.url, NO_COLOR: "1" };
  afterAll(async () => {
    for (const { kill } of running) for (const signal of ["SIGTERM", "SIGKILL"] as const) kill(signal);
    await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
  });
  const start = (...args: string[]): Running => {
    const child = spawn(process.execPath, [PROGRAM, ...args], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    own(child);
    const code = new Promise<number | null>((resolve) => child.once("close", resolve));
    const one = new Running(child, (signal) => child.kill(signal), code);
    running.push(one);
    return one;
  };
  const begin = (...args: string[]) => {
    const one = runHere(args, env, false);
    running.push(one);
    return one;
  };
  return {
    server,
    start,
    run: (...args) => start(...args).ended,
    begin,
    main: (...args) => begin(...args).ended,
    shown: async (args, own = {}) =>
      (await runHere(args, { HOLDFAST_URL: server.url, TERM: "xterm", ...own }, true).ended).out,
    client: (options = {}) => {
      const client = new LockClient(server.connect(), { ...UNHURRIED, watchdogTimeout: 6_500, ...options });
      clients.push(client);
      return client;
    },
  };
}
