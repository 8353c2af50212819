/** What the compiler accepts and refuses of a name and its method. Only compiled, in both ways. */
import { locked } from "../../src/entries/decorator.js";
import { Locked } from "../../src/entries/nestjs.js";
import type { LockClient } from "../../src/index.js";

declare const client: LockClient;

interface Order {
  readonly id: string;
  readonly pieces: number;
}

export class Accepted {
  readonly shop: string = "shop";
  @locked(client, (id: string | number) => `${id}`)
  async wider(_id: string): Promise<void> {}
  @locked(client, (order: { readonly id: string }) => order.id)
  async partOf(_order: Order): Promise<void> {}
  @locked(client, (id?: string) => `${id}`)
  async optional(_id: string): Promise<void> {}
  @locked(client, (id: unknown) => `${id}`)
  async unknown(_id: string): Promise<void> {}
  @locked(client, (...ids: unknown[]) => ids.join())
  async all(_a: string, _b: number): Promise<void> {}
  @locked(client, (a: string) => a)
  async fewer(_a: string, _b: number): Promise<void> {}
  @locked(client, () => "none")
  async none(_a: string, _b?: number): Promise<void> {}
  @locked(client, "text")
  async text(_a: string, _b?: number): Promise<void> {}
  @locked(client, (id) => `${id}`)
  async inferred(_id: string): Promise<void> {}
  @locked(client, (id) => `${id}`)
  async inferredUnknown(_id: unknown): Promise<void> {}
  @locked(client, (id: string) => id)
  async rest(..._ids: [string, ...string[]]): Promise<void> {}
  @locked(client, (id: string) => id)
  async generic<K extends string>(id: K): Promise<K> {
    return id;
  }
  @locked(client, function (this: Accepted, id: string) {
    return this.shop + id;
  })
  async byObject(_id: string): Promise<void> {}
  @locked<[id: string]>(client, (id) => id)
  async explicit(_id: string): Promise<void> {}
  @locked(client, (id: string) => id)
  async withThis(this: Accepted, _id: string): Promise<void> {}
  @locked(client, "text")
  async withWiderThis(this: { readonly shop: string }): Promise<void> {}
  @locked(client, () => "none")
  static async ofClass(this: typeof Accepted): Promise<void> {}
}

type Sell = (id: string) => Promise<void>;
export function byHand(method: Sell, context: ClassMethodDecoratorContext): Sell {
  return locked(client, (id: string) => id)(method, context);
}

export class Refused {
  // @ts-expect-error: it may be called without
  @locked(client, (id: string) => id.toUpperCase())
  async missing(_id?: string): Promise<void> {}
  // @ts-expect-error: it may be called with a number
  @locked(client, (id: string) => id.toUpperCase())
  async narrower(_id: string | number): Promise<void> {}
  // @ts-expect-error: it has one argument
  @locked(client, (id: string, pieces: number) => id + pieces.toFixed())
  async more(_id: string): Promise<void> {}
  // @ts-expect-error: it has none
  @locked(client, (id: string) => id)
  async none(): Promise<void> {}
  // @ts-expect-error: it has others
  @locked(client, (...ids: string[]) => ids.join())
  async others(_pieces: number): Promise<void> {}
  // @ts-expect-error: it may be called with a number
  @locked(client, (id: string) => id.toUpperCase())
  async narrowerWithThis(this: Refused, _id: string | number): Promise<void> {}
  // @ts-expect-error: it is not asynchronous
  @locked(client, "text")
  synchronous(): void {}
  // @ts-expect-error: it is not asynchronous
  @locked(client, "text")
  synchronousWithThis(this: Refused): void {}
  // @ts-expect-error: it is no method
  @locked(client, "text")
  field = 1;
}

const target = {};
Locked((id: string | number) => `${id}`)(target, "wider", { value: async (_id: string) => {} });
Locked((order: { readonly id: string }) => order.id)(target, "partOf", {
  value: async (_order: Order) => {},
});
Locked("text")(target, "text", { value: async (_id: string) => {} });
Locked((id) => `${id}`)(target, "inferred", { value: async (_id: string) => {} });
// @ts-expect-error: it may be called without
Locked((id: string) => id)(target, "missing", { value: async (_id?: string) => {} });
// @ts-expect-error: it may be called with a number
Locked((id: string) => id)(target, "narrower", { value: async (_id: string | number) => {} });
// @ts-expect-error: it has none
Locked((id: string) => id)(target, "none", { value: async () => {} });
