// Which payments were given to clerks to be booked under the lock. All of them have to be in the book.
export class DaySheet {
  #book;
  #open;
  #booked = [];

  constructor(book, payments) {
    this.#book = book;
    this.#open = [...payments];
  }

  /** The next payments. They count as booked once the clerk says so. */
  take(count) {
    return this.#open.splice(0, count);
  }

  /** Has the clerk do a task with payments; resolves with what the task returned. */
  give(clerk, task, payments, pause) {
    const done = clerk.ask(task, { payments, pause }).then((result) => {
      this.#booked.push(...payments);
      return result;
    });
    // It may fail (the clerk may be killed) before anybody awaits it, or when nobody does any more.
    done.catch(() => {});
    return done;
  }

  /** Throws if one is not in the book, or one that nobody booked is. */
  async check() {
    const { lost, missing, wanted } = await this.#book.compare(this.#booked);
    if (lost !== 0 || missing !== 0) {
      throw new Error(`${lost} updates were LOST UNDER THE LOCK: ${missing} of ${wanted} is missing`);
    }
    return { payments: this.#booked.length, wanted };
  }
}
