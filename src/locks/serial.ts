/** Runs tasks one at a time, in the order they were handed in. The next one starts when the last has settled. */
export class Serial {
  #tail: Promise<unknown> | undefined;

  get busy(): boolean {
    return this.#tail !== undefined;
  }

  run<T>(task: () => Promise<T>): Promise<T> {
    const work = this.#tail ? this.#tail.then(task, task) : task();
    this.#tail = work;
    const done = () => {
      if (this.#tail === work) this.#tail = undefined;
    };
    work.then(done, done);
    return work;
  }
}
