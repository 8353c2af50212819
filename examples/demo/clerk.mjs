// A clerk as the demo sees it: a child process that can be asked, listened to, and killed.
import { fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { fileURLToPath } from "node:url";
import { kill, own } from "../children.mjs";
import { now } from "./clock.mjs";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));

/**
 * Emits `event` with (name, at) for all that happens to the clerk's lock, and each of these also by its own name with
 * (at): waiting, acquired, renewed, released, lost, no-lock, idle, gave-up, killed.
 */
export class Clerk extends EventEmitter {
  name;
  #child;
  #questions = new Map();
  #lastId = 0;

  constructor(name, args) {
    super();
    this.name = name;
    this.#child = own(fork(WORKER, args.map(String), { stdio: ["ignore", "ignore", "inherit", "ipc"] }));
    this.#child.on("message", (message) => this.#receive(message));
    this.#child.on("exit", () => this.#giveUpQuestions());
    // A question that was sent to a process on its way out.
    this.#child.on("error", () => this.#giveUpQuestions());
  }

  get pid() {
    return this.#child.pid;
  }

  /** Resolves with what the task (of tasks.mjs) returned. */
  ask(task, args = {}) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#questions.set(id, { resolve, reject });
      if (this.#child.connected) this.#child.send({ id, task, args });
      else this.#giveUpQuestions();
    });
  }

  /** SIGKILL: the process gets no chance to give anything back. Resolves when it is gone. */
  async kill() {
    this.#tell("killed", now());
    await kill(this.#child);
  }

  /** Lets the clerk close its client and leave. */
  async leave() {
    if (!this.#child.connected) return;
    await this.ask("leave");
    const gone = once(this.#child, "exit");
    this.#child.disconnect();
    await gone;
  }

  #receive({ id, event, at, result, error }) {
    if (event !== undefined) return this.#tell(event, at);
    const { resolve, reject } = this.#questions.get(id);
    this.#questions.delete(id);
    if (error === undefined) resolve(result);
    else reject(new Error(`${this.name}: ${error}`));
  }

  #tell(event, at) {
    this.emit("event", event, at);
    this.emit(event, at);
  }

  #giveUpQuestions() {
    for (const { reject } of this.#questions.values()) reject(new Error(`${this.name}'s process has ended`));
    this.#questions.clear();
  }
}
