/** A process that holds a lock, waits for another one, and ends in the way it is told. */
import { Redis } from "ioredis";
import { LockClient } from "../../src/index.js";

interface BeginRequest {
  readonly port: number;
  readonly held: string;
  readonly waited: string;
}

let client: LockClient | undefined;

export const handlers = {
  /** Takes `held`, and waits for `waited`, which another owner holds. */
  async begin({ port, held, waited }: BeginRequest): Promise<void> {
    const mine = new LockClient(new Redis(port), { watchdogTimeout: 1_500, pollCap: 500 });
    client = mine;
    // On a slow machine connecting may take longer than the lease.
    await mine.ready();
    await mine.getLock(held).lock();
    const waiting = new Promise((resolve) => mine.once("waiting", resolve));
    mine
      .getFairLock(waited)
      .lock()
      .catch(() => {});
    await waiting;
  },

  /** Ends like a service: the handler closes the client, and then the process exits. */
  closeOnTerm(): void {
    process.once("SIGTERM", () => void client?.close({ timeout: 0 }).then(() => process.exit(0)));
  },

  exit(): void {
    process.exit(7);
  },

  crash(): void {
    setImmediate(() => {
      throw new Error("nobody catches this");
    });
  },
};
