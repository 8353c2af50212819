/** Real processes that record their calls, each behind a proxy in front of one server; and the faults of each round. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  type FaultProxy,
  type RedisServer,
  startProxy,
  startRedis,
  startWorker,
  type Worker,
} from "../../support/index.js";
import { Random } from "../../support/random.js";
import { groupByName, type History } from "../history.js";
import {
  type LockAnswer,
  type LockCall,
  mutex,
  readWriteLock,
  type SemaphoreAnswer,
  type SemaphoreCall,
  semaphore,
} from "../specs.js";
import { checkLinearizable, type Verdict } from "../wing-gong.js";
import { readRecordings } from "./recording.js";

export type AnyHistory = History<LockCall | SemaphoreCall, LockAnswer | SemaphoreAnswer>;

export type Kind = "mutex" | "readwrite" | "semaphore";

/** A mistake, planted by exclusion/planted/mutation.mjs. */
export interface Edit {
  readonly script: string;
  readonly from: string;
  readonly to: string;
  /** How often `from` stands there; default once. */
  readonly times?: number;
}

export interface CrewOptions {
  readonly seed: number;
  readonly kinds: readonly Kind[];
  readonly edits?: readonly Edit[];
}

interface Member {
  readonly worker: Worker;
  readonly proxy: FaultProxy;
}

const PROCESSES = 3;
const TASKS = 4;
const WAYS = 5;
const NAMES = 2;
const PERMITS = 3;
/** One of the processes is killed every `KILLS_EVERY` rounds. */
const KILLS_EVERY = 6;

/** The number of faults in each of the other rounds. */
const FAULTS = 3;
/** Milliseconds: longer than a call waits for an answer, but shorter than any lease that is renewed. */
const LONG_STALL = 1_300;
const SHORT = 150;

const isScript = ([verb = ""]: readonly string[]): boolean => /^EVAL/.test(verb);

export class Crew {
  readonly #options: CrewOptions;
  readonly #random: Random;
  readonly #server: RedisServer;
  readonly #folder: string;
  readonly #members: Member[] = [];
  #started = 0;
  #rounds = 0;
  killed = 0;

  private constructor(options: CrewOptions, server: RedisServer, folder: string) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#server = server;
    this.#folder = folder;
  }

  static async gather(options: CrewOptions): Promise<Crew> {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-histories-"));
    const crew = new Crew(options, await startRedis(), folder);
    await Promise.all(Array.from({ length: PROCESSES }, () => crew.#add()));
    return crew;
  }

  /**
   * All tasks of all processes make some calls, while faults strike. Each round has names of its own, so a late command
   * of another round changes nothing here, and a history is as short as its round.
   */
  async play(): Promise<void> {
    const round = ++this.#rounds;
    const names = this.#options.kinds.flatMap((kind) =>
      Array.from({ length: NAMES }, (_, i) => `${kind}-${round}-${i}`),
    );
    const numbers = names.filter((name) => kindOf(name) === "semaphore");
    await Promise.all(numbers.map((name) => this.#server.call("SET", name, PERMITS)));
    const plays = this.#members.map(async (member) => {
      const played = member.worker.request("play", { names, tasks: TASKS, ways: WAYS });
      return { member, error: await played.then(() => undefined).catch((error: unknown) => error) };
    });
    const victim = round % KILLS_EVERY === 0 ? await this.#kill() : await this.#strike();
    for (const { member, error } of await Promise.all(plays)) if (error && member !== victim) throw error;
    for (const { proxy } of this.#members) proxy.restore();
  }

  /** Makes some faults, one after the other. */
  async #strike(): Promise<undefined> {
    for (let i = 0; i < FAULTS; i++) {
      const { worker, proxy } = this.#random.pick(this.#members);
      const fault = this.#random.pick(["reply", "reply", "request", "cut", "stall", "pause"] as const);
      if (fault === "reply") proxy.cutReplyOf(isScript);
      if (fault === "request") proxy.dropRequest(isScript);
      if (fault === "cut") proxy.cut();
      if (fault === "stall") proxy.stall();
      if (fault === "pause") worker.pause();
      await pause(this.#random.below(fault === "stall" ? LONG_STALL : SHORT));
      if (fault === "stall") proxy.restore();
      if (fault === "pause") worker.resume();
    }
  }

  async #kill(): Promise<Member> {
    const victim = this.#random.pick(this.#members);
    await pause(this.#random.below(SHORT));
    this.#members.splice(this.#members.indexOf(victim), 1);
    this.killed++;
    await Promise.all([dismiss(victim), this.#add()]);
    return victim;
  }

  async #add(): Promise<void> {
    const name = `p${++this.#started}`;
    const proxy = await startProxy(this.#server, { record: false });
    const worker = await startWorker(new URL("worker.mjs", import.meta.url));
    this.#members.push({ worker, proxy });
    const path = join(this.#folder, name);
    const { edits } = this.#options;
    await worker.request("start", { port: proxy.port, name, seed: this.#random.below(2 ** 31), path, edits });
  }

  async end(): Promise<void> {
    await Promise.all(this.#members.map((member) => dismiss(member)));
    await this.#server.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  history(): AnyHistory {
    return withoutDoubtful(readRecordings(this.#folder));
  }
}

/**
 * A try of a waiting call may have been granted and undone without the call's knowledge. So if another call finds the
 * lock held while that call is under way, the history need not explain its answer.
 */
function withoutDoubtful(history: AnyHistory): AnyHistory {
  const granted = groupByName(history.filter((operation) => says(operation, "granted", true)));
  const isDoubtful = ({ name, caller, invoked, settled }: AnyHistory[number]) =>
    granted.get(name)?.some((other) => {
      return other.caller !== caller && other.invoked < settled && other.settled > invoked;
    });
  const findsItHeld = (operation: AnyHistory[number]) =>
    says(operation, "granted", false) || says(operation, "held", true);
  return history.map((operation) =>
    findsItHeld(operation) && isDoubtful(operation)
      ? { ...operation, outcome: { kind: "failed" } }
      : operation,
  );
}

/** Whether the call was answered with this value. */
export function says({ outcome }: AnyHistory[number], what: string, value: unknown): boolean {
  return (
    outcome.kind === "ok" &&
    Object.entries(outcome.answer).some(([key, said]) => key === what && said === value)
  );
}

async function dismiss({ worker, proxy }: Member): Promise<void> {
  await worker.kill();
  await proxy.stop();
}

function kindOf(name: string): Kind {
  return name.slice(0, name.indexOf("-")) as Kind;
}

/** The verdict of the search for each kind. */
export function judge(history: AnyHistory): Record<Kind, Verdict> {
  const ofKind = (kind: Kind) => history.filter(({ name }) => kindOf(name) === kind);
  return {
    mutex: checkLinearizable(ofKind("mutex") as History<LockCall, LockAnswer>, mutex),
    readwrite: checkLinearizable(ofKind("readwrite") as History<LockCall, LockAnswer>, readWriteLock),
    semaphore: checkLinearizable(
      ofKind("semaphore") as History<SemaphoreCall, SemaphoreAnswer>,
      semaphore(PERMITS),
    ),
  };
}
