// A writer as the example sees it: a child process that can be stopped, and the way from there to the database.
import { fork } from "node:child_process";
import { once } from "node:events";
import { own } from "../children.mjs";

export class Writer {
  #child;
  #database;

  constructor(name, port, database) {
    this.#child = own(fork(new URL("writer-process.mjs", import.meta.url), [name, port]));
    this.#database = database;
  }

  /** Takes the lock, if the way has one, and goes as far as to be about to write. */
  async prepare(way) {
    this.#child.send({ way, row: this.#database.row(way) });
    await once(this.#child, "message");
  }

  /** Writes what was prepared; resolves with the rows that this changed. */
  async write() {
    this.#child.send("write");
    const [{ sql, parameters }] = await once(this.#child, "message");
    const changed = this.#database.run(sql, parameters);
    this.#child.send("written");
    await once(this.#child, "message");
    return changed;
  }

  pause() {
    this.#child.kill("SIGSTOP");
  }

  resume() {
    this.#child.kill("SIGCONT");
  }
}
