/** Several clients, each behind a proxy of its own. */
import type { LockClient } from "../../src/index.js";
import type { Bed } from "./harness.js";

export class Beds implements AsyncDisposable {
  readonly beds: readonly Bed[];

  constructor(beds: readonly Bed[]) {
    this.beds = beds;
  }

  bed(i: number): Bed {
    const bed = this.beds[i];
    if (bed === undefined) throw new Error(`there is no client ${i}`);
    return bed;
  }

  client(i: number): LockClient {
    return this.bed(i).client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.beds.map((bed) => bed.dispose()));
  }
}
