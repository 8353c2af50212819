/** Runs the built program `holdfast` as a shell does, or its main function in this process, which costs a tenth of that. */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { PassThrough } from "node:stream";
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

/** A running program. */
class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  out = "";
  err = "";

  constructor(args: readonly string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, [PROGRAM, ...args], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    own(this.child);
    this.child.stdout?.on("data", (chunk: Buffer) => (this.out += String(chunk)));
    this.child.stderr?.on("data", (chunk: Buffer) => (this.err += String(chunk)));
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code) => resolve({ code, out: this.out, err: this.err }));
    });
  }

  /** Resolves when the program has written a match of the text. */
  async says(text: RegExp): Promise<void> {
    await until(`it says ${text}`, () => text.test(this.out + this.err));
  }
}

/** What the program does between its start and its end, in this process and with an empty stdin. */
async function mainHere(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const streams = { stdin: new PassThrough().end(), stdout: new PassThrough(), stderr: new PassThrough() };
  const code = await main(args, Object.assign(new EventEmitter(), streams, { env }));
  return { code, out: String(streams.stdout.read() ?? ""), err: String(streams.stderr.read() ?? "") };
}

/** A server of a test file, the program on it, and clients beside it. */
export interface Site {
  readonly server: RedisServer;
  start(...args: string[]): Running;
  /** In a process, for what a shell or a command of its own sees. */
  run(...args: string[]): Promise<Ended>;
  /** In this process, for what it answers. */
  main(...args: string[]): Promise<Ended>;
  /**
   * A client that others can see: its presence is there after two seconds, and it loses no hold if it stalls for four.
   */
  client(options?: LockClientOptions): LockClient;
}

export async function useSite(): Promise<Site> {
  const server = await forFile(startRedis());
  const clients: LockClient[] = [];
  const running: Running[] = [];
  const env = { HOLDFAST_URL: server.url, NO_COLOR: "1" };
  afterAll(async () => {
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
  });
  const start = (...args: string[]): Running => {
    const one = new Running(args, env);
    running.push(one);
    return one;
  };
  return {
    server,
    start,
    run: (...args) => start(...args).ended,
    main: (...args) => mainHere(args, env),
    client: (options = {}) => {
      const client = new LockClient(server.connect(), { ...UNHURRIED, watchdogTimeout: 6_500, ...options });
      clients.push(client);
      return client;
    },
  };
}
