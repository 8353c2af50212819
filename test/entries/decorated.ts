/** The class that the tests decorate. It is compiled in both ways, so it has no imports at run time. */
import type { locked as Locked } from "../../src/entries/decorator.js";
import type { Hold, LockClient } from "../../src/index.js";

export interface Shop {
  readonly sold: string[];
  sell(id: string, pieces: number): Promise<number>;
  sellTwice(id: string): Promise<number>;
  count(): Promise<number>;
  fail(): Promise<never>;
}

export function shopOf(locked: typeof Locked, client: LockClient, work: () => Promise<Hold | null>): Shop {
  class DecoratedShop implements Shop {
    readonly locks = client;
    readonly sold: string[] = [];

    @locked(client, (id: string) => `stock:${id}`, { wait: 60_000 })
    async sell(id: string, pieces: number): Promise<number> {
      const before = this.sold.length;
      await work();
      this.sold.length = before;
      this.sold.push(...Array(pieces).fill(id));
      return this.sold.length;
    }

    @locked(
      (self: DecoratedShop) => self.locks,
      (id: string) => `stock:${id}`,
    )
    async sellTwice(id: string): Promise<number> {
      await this.sell(id, 1);
      return this.sell(id, 1);
    }

    @locked(() => client, "count", { kind: "read", wait: 0 })
    async count(): Promise<number> {
      return this.sold.length;
    }

    @locked(client, "fail", { lease: 60_000 })
    async fail(): Promise<never> {
      throw new Error("the method's own");
    }
  }
  return new DecoratedShop();
}
