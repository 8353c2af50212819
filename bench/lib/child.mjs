// A measured process, as the process that measures sees it.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("worker.mjs", import.meta.url));
const START_MS = 60_000;
const CALL_MS = 8_000;
const CLOSE_MS = 400;

export class Child {
  #calls = new Map();
  #lastId = 0;
  #stderr = "";

  /** `config` reaches the adapter as `env`. */
  static async start({ adapter, scenario, config, env }) {
    const child = new Child();
    child.process = fork(WORKER, [adapter, scenario], {
      execArgv: ["--expose-gc"],
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...process.env, ...env, BENCH_CONFIG: JSON.stringify(config) },
    });
    await child.#started();
    return child;
  }

  #started() {
    this.process.stderr.on("data", (data) => {
      this.#stderr = (this.#stderr + data).slice(-2_000);
    });
    this.process.on("error", () => {});
    this.exited = new Promise((resolve) => this.process.once("exit", resolve));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.process.kill("SIGKILL");
        reject(new Error(`a worker did not start: ${this.#stderr}`));
      }, START_MS);
      this.process.on("message", (message) => {
        if (!message.ready) return this.#answer(message);
        clearTimeout(timer);
        resolve();
      });
      this.exited.then((code) => {
        clearTimeout(timer);
        const gone = new Error(`a worker ended (${code}): ${this.#stderr.trim().slice(-600)}`);
        reject(gone);
        for (const call of this.#calls.values()) call.reject(gone);
        this.#calls.clear();
      });
    });
  }

  #answer({ id, value, error }) {
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    clearTimeout(call.timer);
    if (error) call.reject(new Error(error));
    else call.resolve(value);
  }

  call(name, args, patience = CALL_MS) {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#calls.delete(id);
        reject(new Error(`${name}: no answer in ${patience} ms`));
      }, patience);
      this.#calls.set(id, { resolve, reject, timer });
      this.process.send({ id, name, args }, (error) => {
        if (error) this.#answer({ id, error: `a worker is gone: ${this.#stderr.trim().slice(-300)}` });
      });
    });
  }

  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.send({ id: 0, name: "close" }, () => {
      // A channel that is gone is no matter: see the next line.
    });
    const timer = setTimeout(() => this.kill(), CLOSE_MS);
    await this.exited;
    clearTimeout(timer);
  }

  kill() {
    this.process.kill("SIGKILL");
  }
}
