/**
 * A Redis server in memory: keys, scripts and channels, on a clock of its own.
 *
 * It answers in microtasks. Node looks for rejections that nobody handles when all microtasks and ticks have run. So a
 * call that rejects while time is advanced is handled in time if the test adds its handler right after
 * `await advance()`.
 */
import { createHash } from "node:crypto";
import { microtask, nextTick, setImmediate } from "../../base/platform.js";
import { TestClock } from "./clock.js";
import { COMMANDS } from "./commands.js";
import { Keyspace } from "./keyspace.js";
import { Lua } from "./lua.js";
import { parseInteger } from "./numbers.js";
import { NOT_INTEGER, type Reply, ReplyError } from "./reply.js";

/** The version of Redis that the server behaves as. */
const VERSION = "7.0.15";
/** After so many ticks, or turns of the event loop, without any answer nothing more comes unless time passes. */
const QUIET_TICKS = 10;
const QUIET_TURNS = 3;
/**
 * Answers in one turn of the event loop, or to one timer. A test that asks for ever in a loop must not keep its own
 * time-out from coming.
 */
const MOST_IN_TURN = 10_000;

/** Called at once with each message on a channel; both texts have one character per byte. */
export type Subscriber = (channel: string, message: string) => void;

/** One interpreter for all servers: a script is compiled once for all of them, and keeps nothing from run to run. */
let lua: Lua | undefined;
/** The hashes of scripts, by text. */
const hashes = new Map<string, string>();
let servers = 0;
let ports = 0;

export class MemoryServer {
  readonly clock: TestClock;
  /** Each server has an address of its own. */
  readonly port: number = ++ports;
  #keys: Keyspace = new Keyspace(() => Math.floor(this.clock.wall()));
  /** The scripts by hash. */
  readonly #scripts = new Map<string, string>();
  /** SPUBLISH has channels of its own. */
  readonly #channels = {
    publish: new Map<string, Set<Subscriber>>(),
    spublish: new Map<string, Set<Subscriber>>(),
  };
  #runId = newRunId();
  /** Answers and messages on their way, in their order. */
  readonly #onTheirWay: (() => void)[] = [];
  #delivered = 0;
  #inTurn = 0;
  /** Pending while answers are counted. */
  #turn: NodeJS.Immediate | undefined;
  #advancing: Promise<void> = Promise.resolve();

  constructor(clock: TestClock = new TestClock()) {
    this.clock = clock;
  }

  get keys(): Keyspace {
    return this.#keys;
  }

  /** Makes the server as after a restart: with these keys, and without its scripts. Its connections are lost separately. */
  restart(keys: Keyspace): void {
    this.#keys = keys;
    this.#scripts.clear();
    this.#runId = newRunId();
  }

  /** Runs a command, whose words are one character per byte. @throws ReplyError */
  execute([name = "", ...args]: readonly string[]): Reply {
    const command = name.toLowerCase();
    if (command === "eval" || command === "evalsha") return this.#runScript(command, args);
    if (command === "info") return `# Server\r\nredis_version:${VERSION}\r\nrun_id:${this.#runId}\r\n`;
    return this.#run(
      command,
      args,
      `ERR unknown command '${name}'`,
      `ERR wrong number of arguments for '${command}' command`,
    );
  }

  subscribe(kind: "publish" | "spublish", channel: string, subscriber: Subscriber): void {
    const subscribers = this.#channels[kind].get(channel) ?? new Set();
    this.#channels[kind].set(channel, subscribers.add(subscriber));
  }

  unsubscribe(kind: "publish" | "spublish", channel: string, subscriber: Subscriber): void {
    const subscribers = this.#channels[kind].get(channel);
    subscribers?.delete(subscriber);
    if (subscribers?.size === 0) this.#channels[kind].delete(channel);
  }

  /** Calls back in a microtask, in the order of the calls of this method. */
  later(callback: () => void): void {
    this.#onTheirWay.push(callback);
    const deliver = () => {
      this.#delivered++;
      this.#onTheirWay.shift()?.();
    };
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined;
      this.#inTurn = 0;
    }).unref();
    if (++this.#inTurn < MOST_IN_TURN) microtask(deliver);
    else setImmediate(deliver);
  }

  /**
   * Resolves when everything has been done that needs neither time nor another turn of the event loop. A tick comes
   * when no microtask is left, however long the chain of promises was, and before Node looks for rejections.
   */
  async rest(): Promise<void> {
    let seen = -1;
    for (let quiet = 0; quiet < QUIET_TICKS; quiet++) {
      await tick();
      if (this.#delivered === seen) continue;
      seen = this.#delivered;
      quiet = 0;
    }
    if (this.#onTheirWay.length === 0) return;
    await nextTurn();
    await this.rest();
  }

  /** Resolves when everything has been done that needs no time. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const before = this.#delivered;
      await this.rest();
      await nextTurn();
      if (this.#delivered !== before) quiet = -1;
    }
  }

  /** Lets `ms` pass, after what earlier calls of this method let pass. */
  advance(ms: number): Promise<void> {
    const rest = () => {
      // Counted anew for each timer: however long the time is, only a test that asks for ever needs a turn.
      this.#inTurn = 0;
      return this.rest();
    };
    const passed = this.#advancing.then(() => this.settle()).then(() => this.clock.advance(ms, rest));
    this.#advancing = passed;
    return passed;
  }

  #run(command: string, args: readonly string[], unknown: string, wrongCount: string): Reply {
    if (command === "publish" || command === "spublish") {
      if (args.length !== 2) throw new ReplyError(wrongCount);
      return this.#publish(command, args[0] as string, args[1] as string);
    }
    const known = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
    if (!known) throw new ReplyError(unknown);
    const words = args.length + 1;
    if (known.arity > 0 ? words !== known.arity : words < -known.arity) throw new ReplyError(wrongCount);
    return known.run(this.#keys, args);
  }

  #publish(kind: "publish" | "spublish", channel: string, message: string): number {
    const subscribers = [...(this.#channels[kind].get(channel) ?? [])];
    for (const hear of subscribers) hear(channel, message);
    return subscribers.length;
  }

  /** EVAL script keys [key ...] [argument ...], and EVALSHA with the script's hash. */
  #runScript(command: "eval" | "evalsha", [script = "", count = "", ...rest]: readonly string[]): Reply {
    const keys = parseInteger(count);
    if (keys === undefined) throw new ReplyError(NOT_INTEGER);
    if (keys < 0n) throw new ReplyError("ERR Number of keys can't be negative");
    if (keys > rest.length) throw new ReplyError("ERR Number of keys can't be greater than number of args");
    const text = command === "eval" ? script : this.#scripts.get(script.toLowerCase());
    if (text === undefined) throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
    lua ??= new Lua();
    if (command === "eval") this.#scripts.set(hashOf(text), text);
    return lua.run(text, rest.slice(0, Number(keys)), rest.slice(Number(keys)), ([name = "", ...args]) =>
      this.#run(
        name.toLowerCase(),
        args,
        "ERR Unknown Redis command called from script",
        "ERR Wrong number of args calling Redis command from script",
      ),
    );
  }
}

function hashOf(script: string): string {
  const known = hashes.get(script);
  if (known !== undefined) return known;
  const hash = createHash("sha1").update(script, "latin1").digest("hex");
  hashes.set(script, hash);
  return hash;
}

function newRunId(): string {
  return String(++servers).padStart(40, "0");
}

function tick(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
