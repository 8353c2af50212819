/** Contract section 9: `holdfast/otel`, with the SDK's own readers and exporters. */
import { context, metrics, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { expect, test, vi } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { type InstrumentOptions, instrument } from "../../src/entries/otel.js";
import { LockClient, MultiLock } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { forFile, forTest, startRedis, UNHURRIED } from "../support/index.js";

const server = await forFile(startRedis());

const newClient = (): LockClient => forTest(new LockClient(server.connect(), UNHURRIED));

type Metric = "wait" | "hold" | "held" | "waiting" | "lost" | "rejected";
type Series = [attributes: unknown, value: number][];

/** A client, its instrumentation, and the exported data. */
class Observed implements AsyncDisposable {
  readonly client = newClient();
  readonly stop: () => void;
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({
    exporter: this.#metrics,
    exportIntervalMillis: 2 ** 30,
  });
  readonly #meters = new MeterProvider({ readers: [this.#reader] });
  readonly #spans = new InMemorySpanExporter();
  readonly tracer = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(this.#spans)],
  }).getTracer("test");
  readonly #options: InstrumentOptions;

  constructor(options: Pick<InstrumentOptions, "nameOf"> = {}) {
    this.#options = { meter: this.#meters.getMeter("test"), tracer: this.tracer, ...options };
    this.stop = this.instrument(this.client);
  }

  /** Instruments a client with the same meter and tracer. */
  instrument(client: LockClient): () => void {
    return instrument(client, this.#options);
  }

  /** The series of a metric: the attributes, and the value (for a histogram, the number of its values). */
  async series(metric: Metric): Promise<Series> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    const metrics = this.#metrics
      .getMetrics()
      .flatMap((each) => each.scopeMetrics.flatMap((scope) => scope.metrics));
    const found = metrics.find(({ descriptor }) => descriptor.name === `holdfast.lock.${metric}`);
    return (found?.dataPoints ?? []).map(({ attributes, value }) => [
      attributes,
      typeof value === "number" ? value : (value as { count: number }).count,
    ]);
  }

  get spans() {
    return this.#spans.getFinishedSpans();
  }

  get outcomes() {
    return this.spans.map(({ name, attributes }) => [name, attributes["holdfast.outcome"]]).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.#meters.shutdown();
  }
}

const about = (name: string | undefined, outcome?: string, kind = "lock") => ({
  ...(name !== undefined && { "holdfast.lock.name": name }),
  "holdfast.lock.kind": kind,
  ...(outcome !== undefined && { "holdfast.outcome": outcome }),
});

test("waits, holds, losses and refusals are counted with their lock, kind and outcome", async () => {
  await using it = new Observed();
  const lock = it.client.getLock("a");
  await lock.run(async () => expect(await it.series("held")).toEqual([[about("a"), 1]]));
  const theirs = await newClient().getLock("a").lock();
  expect(await lock.tryLock()).toBeNull();
  expect(await lock.tryLock(50)).toBeNull();
  const waiter = await untilWaiting(it.client, () => lock.lock());
  expect(await it.series("waiting")).toEqual([[about("a"), 1]]);
  await theirs.unlock();
  await waiter.done;
  await lock.forceUnlock();
  for (const [metric, series] of Object.entries({
    wait: [
      [about("a", "acquired"), 2],
      [about("a", "timeout"), 1],
    ],
    hold: [
      [about("a", "released"), 1],
      [about("a", "lost"), 1],
    ],
    held: [[about("a"), 0]],
    waiting: [[about("a"), 0]],
    lost: [[about("a", "forced"), 1]],
    rejected: [[about("a"), 1]],
  }))
    expect([metric, await it.series(metric as Metric)]).toEqual([metric, series]);
});

test("a permit is counted while the watchdog keeps it; of one with a lease nobody tells when it ends [B70] [B122]", async () => {
  await using it = new Observed();
  const [here, there] = [it.client, newClient()].map((client) => client.getPermitExpirableSemaphore("p"));
  if (!here || !there) throw new Error("no semaphores");
  const kept = (count: number) => [[about("p", undefined, "permits"), count]];
  await here.trySetPermits(3);
  for (const each of [here, there]) await each.release(await here.acquire({ lease: 60_000 }));
  expect(await it.series("held")).toEqual([]);
  const id = await here.acquire();
  expect(await it.series("held")).toEqual(kept(1));
  await here.release(id);
  expect(await it.series("held")).toEqual(kept(0));
  const leased = await here.acquire();
  expect(await it.series("held")).toEqual(kept(1));
  await here.updateLeaseTime(leased, 60_000);
  expect(await it.series("held")).toEqual(kept(0));
});

test("waiters are counted by lock and kind, each only while it waits, whatever ends its wait [B122]", async () => {
  await using it = new Observed();
  const { client } = it;
  const others = newClient();
  const theirs = await Promise.all(["w1", "w2"].map((name) => others.getLock(name).lock()));
  const failing = await untilWaiting(client, () => client.getLock("w1").lock());
  const waiter = await untilWaiting(client, () => client.getLock("w2").lock());
  const semaphore = client.getSemaphore("w3");
  const permit = await untilWaiting(client, () => semaphore.acquire());
  const latch = client.getCountDownLatch("w4");
  await latch.trySetCount(1);
  const opened = await untilWaiting(client, () => latch.await());
  const waiting = (...counts: number[]) => [
    [about("w1"), counts[0]],
    [about("w2"), counts[1]],
    [about("w3", undefined, "semaphore"), counts[2]],
    [about("w4", undefined, "latch"), counts[3]],
  ];
  expect(await it.series("waiting")).toEqual(waiting(1, 1, 1, 1));
  await latch.countDown();
  await opened.done;
  expect(await it.series("waiting")).toEqual(waiting(1, 1, 1, 0));
  // This wait ends by an error, which no event reports.
  const redis = server.connect();
  await redis.multi().del("w1").rpush("w1", "no lock").publish("redisson_lock__channel:{w1}", "0").exec();
  await expect(failing.done).rejects.toMatchObject({ code: "WRONG_DATA" });
  await semaphore.trySetPermits(1);
  await permit.done;
  expect(await it.series("waiting")).toEqual(waiting(0, 1, 0, 0));
  await theirs[1]?.unlock();
  await (await waiter.done).unlock();
});

test("clients that share a meter are counted in one sum, each for as long as it is instrumented", async () => {
  await using it = new Observed({ nameOf: () => undefined });
  const other = newClient();
  const stop = it.instrument(other);
  const holds = [await it.client.getLock("m1").lock(), await other.getLock("m2").lock()];
  expect(await it.series("held")).toEqual([[about(undefined), 2]]);
  stop();
  expect(await it.series("held")).toEqual([[about(undefined), 1]]);
  for (const hold of holds) await hold.unlock();
  expect(await it.series("held")).toEqual([[about(undefined), 0]]);
});

test("a group is counted once for each instrumented client of a member; its spans are of the first one", async () => {
  await using it = new Observed();
  const other = newClient();
  const group = new MultiLock(it.client.getLock("g1"), other.getLock("g2"));
  const stop = it.instrument(other);
  const waits = about("g1,g2", "acquired", "multi");
  await group.run(() => undefined);
  stop();
  expect(await it.series("wait")).toContainEqual([waits, 2]);
  await group.run(() => undefined);
  expect(await it.series("wait")).toContainEqual([waits, 3]);
  const spans = it.spans.filter(({ attributes }) => attributes["holdfast.lock.kind"] === "multi");
  expect(spans.map(({ name }) => name.split(".")[1]).sort()).toEqual(["hold", "hold", "lock", "lock"]);
});

const noName = () => {
  throw new Error("no name");
};
test.each<[what: string, nameOf: (name: string) => string | undefined, name: string | undefined]>([
  ["bounds the names", (name) => name.split(":")[0], "order"],
  ["leaves the name out", () => undefined, undefined],
  ["leaves the name out where it throws, which disturbs no call", noName, undefined],
])("nameOf %s [B54]", async (_what, nameOf, name) => {
  await using it = new Observed({ nameOf });
  for (const id of [1, 2, 3]) expect(await it.client.getLock(`order:${id}`).run(() => id)).toBe(id);
  expect(await it.series("wait")).toEqual([[about(name, "acquired"), 3]]);
});

test("each call and each hold has a span that tells what became of it, those of this client alone", async () => {
  await using it = new Observed();
  await using other = new Observed();
  const lock = it.client.getLock("s");
  const parent = it.tracer.startSpan("request");
  await context.with(trace.setSpan(context.active(), parent), () => lock.run(() => undefined));
  const lost = await lock.lock();
  await lock.forceUnlock();
  expect(lost.isHeld).toBe(false);
  const told = it.spans.map(({ name, attributes, status }) => [
    name,
    attributes["holdfast.outcome"],
    status.code,
  ]);
  expect(told.sort()).toEqual([
    ["holdfast.hold", "lost", SpanStatusCode.ERROR],
    ["holdfast.hold", "released", SpanStatusCode.UNSET],
    ["holdfast.lock", "acquired", SpanStatusCode.UNSET],
    ["holdfast.lock", "acquired", SpanStatusCode.UNSET],
  ]);
  expect(new Set(it.spans.map(({ attributes }) => attributes["holdfast.lock.name"]))).toEqual(new Set(["s"]));
  expect(other.spans).toEqual([]);
});

const left = new Error("the user has left");
type End = (it: Observed, abort: (reason: unknown) => void) => unknown;
const { ERROR } = SpanStatusCode;
test.each<[how: string, end: End, outcome: string, status: object, events: string[]]>([
  ["is aborted with an Error", (_, abort) => abort(left), "abort", { message: left.message }, ["exception"]],
  ["is aborted with no Error", (_, abort) => abort("left"), "abort", {}, []],
  [
    "is ended by close",
    ({ client }) => client.close({ timeout: 0 }),
    "closed",
    { message: expect.any(String) },
    ["exception"],
  ],
])(
  "the span of a call that %s has the status of an error, and says so [B190]",
  async (how, end, outcome, status, events) => {
    await using it = new Observed();
    await newClient().getLock(how).lock();
    const abort = new AbortController();
    const { signal } = abort;
    const { done } = await untilWaiting(it.client, () => it.client.getLock(how).lock({ signal }));
    const ended = Promise.allSettled([done]);
    await end(it, (reason) => abort.abort(reason));
    await ended;
    expect(it.outcomes).toEqual([["holdfast.lock", outcome]]);
    const [span] = it.spans;
    expect(span?.status).toEqual({ code: ERROR, ...status });
    expect(span?.events.map(({ name }) => name)).toEqual(events);
  },
);

test("stopped, it counts nothing as held, ends the spans of what goes on, and records nothing more [B94] [B156]", async () => {
  await using it = new Observed();
  const lock = it.client.getLock("o");
  const hold = await lock.lock();
  const abort = new AbortController();
  const waits = await untilWaiting(it.client, () => lock.lock({ signal: abort.signal }));
  expect(await it.series("held")).toEqual([[about("o"), 1]]);
  expect(it.outcomes).toEqual([["holdfast.lock", "acquired"]]);
  it.stop();
  it.stop();
  // A span without an end is exported by nobody.
  const ended = [
    ["holdfast.hold", undefined],
    ["holdfast.lock", undefined],
    ["holdfast.lock", "acquired"],
  ];
  expect(it.outcomes).toEqual(ended);
  expect(await it.series("held")).toEqual([[about("o"), 0]]);
  abort.abort();
  await expect(waits.done).rejects.toThrow();
  await hold.unlock();
  await lock.run(() => undefined);
  expect(it.outcomes).toEqual(ended);
  expect(await it.series("wait")).toEqual([[about("o", "acquired"), 1]]);
});

test("by default it records with the global API, by this package's name and version; wrong arguments are refused", async () => {
  const client = newClient();
  const asked = [vi.spyOn(metrics, "getMeter"), vi.spyOn(trace, "getTracer")];
  const stop = instrument(client);
  for (const spy of asked) expect(spy).toHaveBeenCalledWith("holdfast", manifest.version);
  await client.getLock("d").run(() => undefined);
  stop();
  expect(() => instrument({} as LockClient)).toThrow(TypeError);
  for (const options of [{ name: String }, { nameOf: "few" }])
    expect(() => instrument(client, options as object)).toThrow(TypeError);
});
