/**
 * Runs tasks one at a time, in the order they were handed in. The next one starts when the last has settled.
 *
 * The first layer of a tenure: serial, holdings, losses, keeper, returns, tenure. One object, since it is what an idle hold costs.
 * None of its classes has a method that is private by `#`: each class that has one costs each of its objects a word.
 */
export abstract class Serial {
  #tail: Promise<unknown> | undefined;

  protected get busy(): boolean {
    return this.#tail !== undefined;
  }

  protected inOrder<T>(task: () => Promise<T>): Promise<T> {
    const work = this.#tail ? this.#tail.then(task, task) : task();
    this.#tail = work;
    const done = () => {
      if (this.#tail === work) this.#tail = undefined;
    };
    work.then(done, done);
    return work;
  }
}
