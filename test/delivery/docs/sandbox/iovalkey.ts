/** What a block gets for `iovalkey`: the same, but connected to the test's server. */
import { Redis as RealRedis } from "iovalkey";
import { servers } from "./servers.js";

export class Redis extends RealRedis {
  constructor() {
    super({ host: "127.0.0.1", port: servers.masters[0] as number });
  }
}
