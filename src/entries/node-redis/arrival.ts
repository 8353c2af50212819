/** One promise for all calls that wait until a connection is there. */
import { ignore, type PlainClient } from "./clients.js";

export class Arrival {
  resolve: (client: PlainClient) => void = ignore;
  reject: (error: Error) => void = ignore;
  readonly promise: Promise<PlainClient> = new Promise((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}
