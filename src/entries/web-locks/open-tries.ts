/**
 * The requests of a client whose first answer is on its way. The standard decides about all requests in their order,
 * whatever their names. Here Redis answers, in any order. So the callbacks of requests of one moment wait for each
 * other, to run in the order of the requests.
 */
import { clearTimeout, setTimeout } from "../../base/platform.js";
import type { WebLockRequest } from "./request.js";

/** Milliseconds: an answer that takes longer than the others of its moment holds up no other request. */
const TOGETHER = 20;

export class OpenTries {
  readonly #tries = new Set<WebLockRequest>();

  /** Adds a request that has just begun to try. */
  add(request: WebLockRequest): void {
    this.#tries.add(request);
    // Whatever the answer is: a request that is refused, or aborts, must not stay here with its callback.
    void request.answered.then(() => this.#tries.delete(request));
  }

  /** Resolves when it is known of all requests up to this one whether they are granted at once. */
  async settled(last: number): Promise<void> {
    for (let open = this.#upTo(last); open.length > 0; open = this.#upTo(last)) {
      await Promise.all(open.map(({ answered }) => answered));
    }
  }

  /** Waits a moment for earlier requests that have no answer yet; undefined if there are none. */
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
    // One that has its answer leaves a moment later.
    return [...this.#tries].filter(({ number, phase }) => number <= last && phase === "trying");
  }
}
