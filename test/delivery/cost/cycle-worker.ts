/**
 * A process that counts what a warm take and give back of a free lock makes: bytes, promises, and objects that live
 * while the lock is held. It can waste some of each on purpose, to show that the counting would notice.
 */
import { createHook } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { once } from "node:events";
import { getHeapSnapshot, getHeapStatistics } from "node:v8";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { Redis } from "ioredis";
import { instrument } from "../../../src/entries/otel.js";
import { type Hold, LockClient } from "../../../src/index.js";
import type { Figures } from "./cost-worker.js";

/** Enough runs that the compiler has settled, too. */
const WARM = 2_000;
const FEW = 200;
const MANY = 1_200;
const SLICES = 5;

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Lets work end that is left after an answer, such as garbage collection. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function repeat(times: number, act: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i++) await act();
}

/** Bytes for each run of `act`. No garbage is collected in a slice, because the young generation is larger than that. */
async function bytes(act: () => Promise<unknown>): Promise<number> {
  const slices: number[] = [];
  for (let i = 0; i < SLICES; i++) {
    globalThis.gc?.();
    await settled();
    const before = getHeapStatistics().used_heap_size;
    await repeat(FEW, act);
    slices.push((getHeapStatistics().used_heap_size - before) / FEW);
  }
  return median(slices);
}

/** Promises for each run of `act`, with those of ioredis and of `act` itself. */
async function promises(act: () => Promise<unknown>): Promise<number> {
  let made = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === "PROMISE") made++;
    },
  }).enable();
  await repeat(FEW, act);
  hook.disable();
  return made / FEW;
}

/** Objects, functions, arrays, strings and numbers on the heap. */
async function objects(): Promise<number> {
  await settled();
  globalThis.gc?.();
  // A stack makes V8 note where the lines of this bundle begin; without that it looks for them anew for each object.
  void new Error("its stack is asked for").stack;
  const snapshot = getHeapSnapshot();
  let text = "";
  snapshot.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await once(snapshot, "end");
  const { snapshot: about, nodes } = JSON.parse(text) as {
    snapshot: { meta: { node_fields: string[]; node_types: [string[]] } };
    nodes: number[];
  };
  const { node_fields: fields, node_types: types } = about.meta;
  const counted = ["object", "closure", "array", "string", "concatenated string", "number"].map((type) =>
    types[0].indexOf(type),
  );
  return nodes.filter((value, i) => i % fields.length === 0 && counted.includes(value)).length;
}

async function wasted(hold: Promise<Hold>): Promise<Hold> {
  for (let i = 0; i < 20; i++) await hold;
  const copies = Array.from({ length: 3_000 }, () => hold);
  const kept = copies.slice(0, 30).map((copy) => ({ copy }));
  return Object.assign(await hold, { kept });
}

class Cycle {
  readonly #redis: Redis;
  readonly #client: LockClient;
  readonly #isWasteful: boolean;
  #names = 0;

  constructor(redis: Redis, { isWasteful = false, told }: Omit<Order, "port">) {
    this.#redis = redis;
    this.#isWasteful = isWasteful;
    // A long time-out, so that nothing is renewed meanwhile.
    this.#client = new LockClient(redis, {
      watchdogTimeout: 600_000,
      traceHolds: told === "with traceHolds",
    });
    if (told) LISTENERS[told](this.#client);
  }

  /** Commands sent to Redis so far. */
  get commands(): number {
    return this.#client.stats().commands;
  }

  take(name = "cycle"): Promise<Hold> {
    const hold = this.#client.getLock(name).lock();
    return this.#isWasteful ? wasted(hold) : hold;
  }

  readonly whole = async (): Promise<void> => {
    const hold = await this.take();
    await hold.unlock();
  };

  /** Two commands that ioredis sends without the library. */
  readonly plain = async (): Promise<void> => {
    await this.#redis.eval("return 1", 1, "cycle", "owner", "30000");
    await this.#redis.eval("return 1", 1, "cycle", "owner");
  };

  async objectsOfHold(): Promise<number> {
    const holds: Hold[] = [];
    const take = async (): Promise<void> => {
      holds.push(await this.take(`cycle:${++this.#names}`));
    };
    await repeat(FEW, take);
    const before = await objects();
    await repeat(MANY - FEW, take);
    const made = (await objects()) - before;
    for (const hold of holds) await hold.unlock();
    return made / (MANY - FEW);
  }
}

/** The listeners that are told of a cycle. */
export type Told = "with events" | "with channels" | "with otel" | "with traceHolds";

const LISTENERS: Readonly<Record<Told, (client: LockClient) => void>> = {
  "with events": (client) => {
    for (const event of ["acquired", "released", "waiting", "rejected", "lost"] as const)
      client.on(event, () => {});
  },
  "with channels": () => {
    const handlers = { start() {}, end() {}, asyncStart() {}, asyncEnd() {}, error() {} };
    for (const name of ["holdfast:lock", "holdfast:hold"]) tracingChannel(name).subscribe(handlers);
  },
  // This also counts what OpenTelemetry itself makes.
  "with otel": (client) => {
    const meters = new MeterProvider({ readers: [new PrometheusExporter({ preventServerStart: true })] });
    const tracers = new BasicTracerProvider();
    instrument(client, { meter: meters.getMeter("cost"), tracer: tracers.getTracer("cost") });
  },
  "with traceHolds": () => {},
};

interface Order {
  readonly port: number;
  readonly isWasteful?: boolean;
  readonly told?: Told;
}

export const handlers: { count(order: Order): Promise<Figures> } = {
  async count({ port, ...order }) {
    const redis = new Redis(port, "127.0.0.1");
    const cycle = new Cycle(redis, order);
    await repeat(WARM, cycle.whole);
    if (order.told) {
      const sent = cycle.commands;
      await cycle.whole();
      const figures = {
        [`commands: take and give back, ${order.told}`]: cycle.commands - sent,
        [`bytes allocated: take and give back, ${order.told}`]: await bytes(cycle.whole),
        [`promises made: take and give back, ${order.told}`]: await promises(cycle.whole),
      };
      redis.disconnect();
      return figures;
    }
    await repeat(WARM, cycle.plain);
    const [own, plain] = [await bytes(cycle.whole), await bytes(cycle.plain)];
    const figures = {
      "bytes allocated: take and give back": own,
      "bytes allocated: take and give back, by those of two commands": own / plain,
      "promises made: take and give back": await promises(cycle.whole),
      "objects on the heap: a hold": await cycle.objectsOfHold(),
    };
    redis.disconnect();
    return figures;
  },
};
