/**
 * The requests of a client whose first answer is on its way. The standard decides about all requests in
 * their order, whatever their names; here Redis answers, and those that were asked in one moment are to be
 * told in their order all the same.
 */
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type { WebLockRequest } from "./request.js";

/** Milliseconds: an answer that takes longer than another of the same moment holds nobody up. */
const TOGETHER = 20;

export class OpenTries {
  /** Some may have got their answer since. */
  readonly #tries = new Set<WebLockRequest>();

  add(request: WebLockRequest): void {
    this.#tries.add(request);
  }

  /** Resolves when it is known of all requests up to this one whether they are granted at once. */
  async settled(last: number): Promise<void> {
    for (let open = this.#upTo(last); open.length > 0; open = this.#upTo(last)) {
      await Promise.all(open.map(({ answered }) => answered));
    }
  }

  /** Lets those go first that were made before this one, for a moment; undefined if there are none. */
  before({ number }: WebLockRequest): Promise<void> | undefined {
    if (this.#upTo(number - 1).length === 0) return undefined;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, TOGETHER);
      void this.settled(number - 1).then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #upTo(last: number): WebLockRequest[] {
    const open: WebLockRequest[] = [];
    for (const request of this.#tries) {
      if (request.phase !== "trying") this.#tries.delete(request);
      else if (request.number <= last) open.push(request);
    }
    return open;
  }
}
