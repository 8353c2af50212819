/** Contract section 9: `holdfast/otel`, with the SDK's own readers and exporters. */
import { context, SpanStatusCode, trace } from "@opentelemetry/api";
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
import { expect, test } from "vitest";
import { type InstrumentOptions, instrument } from "../../src/entries/otel.js";
import { LockClient, MultiLock } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { forFile, startRedis, UNHURRIED } from "../support/index.js";

const server = await forFile(startRedis());

/** A client, its instrumentation, and the exported data. */
class Observed implements AsyncDisposable {
  readonly client = new LockClient(server.connect(), UNHURRIED);
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

  readonly #options: Pick<InstrumentOptions, "nameOf">;

  constructor(options: Pick<InstrumentOptions, "nameOf"> = {}) {
    this.#options = options;
    this.stop = this.instrument(this.client);
  }

  /** Instruments a client with the same meter and tracer. */
  instrument(client: LockClient): () => void {
    return instrument(client, {
      meter: this.#meters.getMeter("test"),
      tracer: this.tracer,
      ...this.#options,
    });
  }

  /** For each metric its series: the attributes, and the value (for a histogram, the number of its values). */
  async series(): Promise<Record<string, [attributes: unknown, value: number][]>> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    const metrics = this.#metrics
      .getMetrics()
      .flatMap((each) => each.scopeMetrics.flatMap((scope) => scope.metrics));
    return Object.fromEntries(
      metrics.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        dataPoints.map(({ attributes, value }) => [
          attributes,
          typeof value === "number" ? value : (value as { count: number }).count,
        ]),
      ]),
    );
  }

  get spans() {
    return this.#spans.getFinishedSpans();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.client.close({ timeout: 0 });
    await this.#meters.shutdown();
  }
}

const about = (name: string, more: object = {}) => ({
  "holdfast.lock.name": name,
  "holdfast.lock.kind": "lock",
  ...more,
});
const outcome = (value: string) => ({ "holdfast.outcome": value });

test("metrics of waits, holds, losses and refusals", async () => {
  await using it = new Observed();
  await using others = new LockClient(server.connect(), UNHURRIED);
  const lock = it.client.getLock("a");
  await lock.run(async () => {
    expect((await it.series())["holdfast.lock.held"]).toEqual([[about("a"), 1]]);
  });
  const theirs = await others.getLock("a").lock();
  expect(await lock.tryLock()).toBeNull();
  expect(await lock.tryLock(3_000)).toBeNull();
  const waiter = await untilWaiting(it.client, () => lock.lock());
  expect((await it.series())["holdfast.lock.waiting"]).toEqual([[about("a"), 1]]);
  await theirs.unlock();
  await waiter.done;
  await lock.forceUnlock();
  expect(await it.series()).toEqual({
    "holdfast.lock.wait": [
      [about("a", outcome("acquired")), 2],
      [about("a", outcome("timeout")), 1],
    ],
    "holdfast.lock.hold": [
      [about("a", outcome("released")), 1],
      [about("a", outcome("lost")), 1],
    ],
    "holdfast.lock.held": [[about("a"), 0]],
    "holdfast.lock.waiting": [[about("a"), 0]],
    "holdfast.lock.lost": [[about("a", outcome("forced")), 1]],
    "holdfast.lock.rejected": [[about("a"), 1]],
  });
});

test("a permit is counted while the watchdog keeps it; of one with a lease nobody tells when it ends [B70] [B122]", async () => {
  await using it = new Observed();
  await using others = new LockClient(server.connect(), UNHURRIED);
  const [here, there] = [it.client, others].map((client) => client.getPermitExpirableSemaphore("p"));
  const held = async () => (await it.series())["holdfast.lock.held"];
  await here?.trySetPermits(3);
  await there?.release((await here?.acquire({ lease: 60_000 })) as string);
  await here?.release((await here?.acquire({ lease: 60_000 })) as string);
  expect(await held()).toBeUndefined();
  const kept = (await here?.acquire()) as string;
  const permits = { "holdfast.lock.name": "p", "holdfast.lock.kind": "permits" };
  expect(await held()).toEqual([[permits, 1]]);
  await here?.release(kept);
  expect(await held()).toEqual([[permits, 0]]);
  const leased = (await here?.acquire()) as string;
  expect(await held()).toEqual([[permits, 1]]);
  await here?.updateLeaseTime(leased, 60_000);
  expect(await held()).toEqual([[permits, 0]]);
});

test("a latch that opens leaves nobody waiting, and takes no other's place [B122]", async () => {
  await using it = new Observed();
  await using others = new LockClient(server.connect(), UNHURRIED);
  const theirs = await others.getLock("l1").lock();
  const waiter = await untilWaiting(it.client, () => it.client.getLock("l1").lock());
  const latch = it.client.getCountDownLatch("l2");
  await latch.trySetCount(1);
  const opened = await untilWaiting(it.client, () => latch.await());
  const series = { "holdfast.lock.name": "l2", "holdfast.lock.kind": "latch" };
  const waiting = async () => (await it.series())["holdfast.lock.waiting"];
  expect(await waiting()).toEqual([
    [about("l1"), 1],
    [series, 1],
  ]);
  await latch.countDown();
  await opened.done;
  expect(new Set(await waiting())).toEqual(
    new Set([
      [series, 0],
      [about("l1"), 1],
    ]),
  );
  await theirs.unlock();
  await (await waiter.done).unlock();
});

test("clients that share a meter are counted in one sum, each for as long as it is instrumented", async () => {
  await using it = new Observed({ nameOf: () => undefined });
  await using other = new LockClient(server.connect(), UNHURRIED);
  const stop = it.instrument(other);
  const holds = [await it.client.getLock("m1").lock(), await other.getLock("m2").lock()];
  const held = async () => (await it.series())["holdfast.lock.held"]?.map(([, count]) => count);
  expect(await held()).toEqual([2]);
  stop();
  expect(await held()).toEqual([1]);
  for (const hold of holds) await hold.unlock();
  expect(await held()).toEqual([0]);
});

test("a group is counted once for each instrumented client of a member; its spans are of the first one", async () => {
  await using it = new Observed();
  await using other = new LockClient(server.connect(), UNHURRIED);
  const group = new MultiLock(it.client.getLock("g1"), other.getLock("g2"));
  const ofGroup = { "holdfast.lock.name": "g1,g2", "holdfast.lock.kind": "multi" };
  const stop = it.instrument(other);
  await group.run(() => undefined);
  stop();
  const waits = async () => (await it.series())["holdfast.lock.wait"];
  expect(await waits()).toContainEqual([{ ...ofGroup, ...outcome("acquired") }, 2]);
  await group.run(() => undefined);
  expect(await waits()).toContainEqual([{ ...ofGroup, ...outcome("acquired") }, 3]);
  const spans = it.spans.filter(({ attributes }) => attributes["holdfast.lock.kind"] === "multi");
  expect(spans.map(({ name }) => name).sort()).toEqual([
    "holdfast.hold",
    "holdfast.hold",
    "holdfast.lock",
    "holdfast.lock",
  ]);
});

test("waiters are counted by lock and kind, and each only while it waits", async () => {
  await using it = new Observed();
  await using others = new LockClient(server.connect(), UNHURRIED);
  const waiting = async () => (await it.series())["holdfast.lock.waiting"];
  const names = ["w1", "w2"];
  const theirs = await Promise.all(names.map((name) => others.getLock(name).lock()));
  const failing = await untilWaiting(it.client, () => it.client.getLock("w1").lock());
  const waiter = await untilWaiting(it.client, () => it.client.getLock("w2").lock());
  const semaphore = it.client.getSemaphore("w3");
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  const more = await untilWaiting(it.client, () => semaphore.acquire());
  const permits = { "holdfast.lock.name": "w3", "holdfast.lock.kind": "semaphore" };
  expect(await waiting()).toEqual([
    [about("w1"), 1],
    [about("w2"), 1],
    [permits, 1],
  ]);
  // This wait ends by an error, which no event reports.
  const redis = server.connect();
  await redis.multi().del("w1").rpush("w1", "no lock").publish("redisson_lock__channel:{w1}", "0").exec();
  await expect(failing.done).rejects.toMatchObject({ code: "WRONG_DATA" });
  await semaphore.release();
  await more.done;
  expect(await waiting()).toEqual([
    [about("w1"), 0],
    [about("w2"), 1],
    [permits, 0],
  ]);
  await theirs[1]?.unlock();
  await (await waiter.done).unlock();
  await theirs[0]?.unlock().catch(() => undefined);
});

test("nameOf bounds the names, and may leave them out", async () => {
  await using few = new Observed({ nameOf: (name) => name.split(":")[0] });
  for (const id of [1, 2, 3]) await few.client.getLock(`order:${id}`).run(() => undefined);
  const waits = (await few.series())["holdfast.lock.wait"];
  expect(waits).toEqual([[about("order", outcome("acquired")), 3]]);
  await using none = new Observed({ nameOf: () => undefined });
  await none.client.getLock("b").run(() => undefined);
  const attributes = { "holdfast.lock.kind": "lock", ...outcome("acquired") };
  expect((await none.series())["holdfast.lock.wait"]).toEqual([[attributes, 1]]);
});

test("a span for each call and each hold, with what became of it", async () => {
  await using it = new Observed();
  await using other = new Observed();
  const parent = it.tracer.startSpan("request");
  await context.with(trace.setSpan(context.active(), parent), () =>
    it.client.getLock("s").run(() => undefined),
  );
  const lost = await it.client.getLock("s").lock();
  await it.client.getLock("s").forceUnlock();
  expect(lost.isHeld).toBe(false);
  const told = it.spans.map(({ name, attributes, status }) => [
    name,
    attributes["holdfast.outcome"],
    status.code,
  ]);
  expect(told.sort()).toEqual([
    ["holdfast.hold", "lost", 2],
    ["holdfast.hold", "released", 0],
    ["holdfast.lock", "acquired", 0],
    ["holdfast.lock", "acquired", 0],
  ]);
  expect(it.spans.map(({ attributes }) => attributes["holdfast.lock.name"])).toEqual(["s", "s", "s", "s"]);
  expect(other.spans).toEqual([]);
});

test("the span of a call that was ended from outside says by what, as its wait does", async () => {
  await using it = new Observed();
  await using others = new LockClient(server.connect(), UNHURRIED);
  const theirs = await others.getLock("e").lock();
  const abort = new AbortController();
  const aborted = await untilWaiting(it.client, () => it.client.getLock("e").lock({ signal: abort.signal }));
  abort.abort();
  await expect(aborted.done).rejects.toThrow();
  const semaphore = it.client.getSemaphore("e2");
  const closed = await Promise.all([
    untilWaiting(it.client, () => it.client.getLock("e").lock()),
    untilWaiting(it.client, () => semaphore.acquire()),
  ]);
  const ends = Promise.allSettled(closed.map(({ done }) => done));
  await it.client.close({ timeout: 0 });
  await ends;
  const told = it.spans.map(({ attributes }) => attributes["holdfast.outcome"]);
  expect(told).toEqual(["abort", "closed", "closed"]);
  await theirs.unlock();
});

test.each([
  ["an Error", new Error("the user has left"), "the user has left", ["exception"]],
  ["no Error", "the user has left", undefined, []],
])(
  "the span of a call whose signal aborted has the status of an error, with a reason that is %s [B190]",
  async (_, reason, message, events) => {
    await using it = new Observed();
    await using others = new LockClient(server.connect(), UNHURRIED);
    const theirs = await others.getLock("e3").lock();
    const abort = new AbortController();
    const aborted = await untilWaiting(it.client, () =>
      it.client.getLock("e3").lock({ signal: abort.signal }),
    );
    abort.abort(reason);
    await expect(aborted.done).rejects.toBe(reason);
    const [span] = it.spans;
    expect(span?.attributes["holdfast.outcome"]).toBe("abort");
    expect(span?.status).toEqual({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
    expect(span?.events.map(({ name }) => name)).toEqual(events);
    await theirs.unlock();
  },
);

test("a nameOf that throws disturbs no call: the name is left out [B54]", async () => {
  await using it = new Observed({
    nameOf: () => {
      throw new Error("no name");
    },
  });
  expect(await it.client.getLock("g").run(() => "done")).toBe("done");
  const attributes = { "holdfast.lock.kind": "lock", ...outcome("acquired") };
  expect((await it.series())["holdfast.lock.wait"]).toEqual([[attributes, 1]]);
});

test("stopped, it records nothing and listens to nothing", async () => {
  await using it = new Observed();
  it.stop();
  it.stop();
  await it.client.getLock("c").run(() => undefined);
  expect(it.spans).toEqual([]);
  const { "holdfast.lock.wait": waits = [] } = await it.series();
  expect(waits).toEqual([]);
});

test("stopped, it counts nothing as held any more [B94]", async () => {
  await using it = new Observed();
  const hold = await it.client.getLock("e").lock();
  const held = async () => (await it.series())["holdfast.lock.held"]?.map(([, count]) => count);
  expect(await held()).toEqual([1]);
  it.stop();
  it.stop();
  expect(await held()).toEqual([0]);
  await hold.unlock();
});

test("stopped, it ends the spans of what goes on: without an end nobody exports them [B156]", async () => {
  await using it = new Observed();
  const hold = await it.client.getLock("o").lock();
  const abort = new AbortController();
  const { signal } = abort;
  const waits = await untilWaiting(it.client, () =>
    it.client.getLock("o").lock({ signal, owner: it.client.newOwner() }),
  );
  const outcomes = () =>
    it.spans.map(({ name, attributes }) => [name, attributes["holdfast.outcome"]]).sort();
  expect(outcomes()).toEqual([["holdfast.lock", "acquired"]]);
  it.stop();
  const ended = [
    ["holdfast.hold", undefined],
    ["holdfast.lock", undefined],
    ["holdfast.lock", "acquired"],
  ];
  expect(outcomes()).toEqual(ended);
  abort.abort();
  await expect(waits.done).rejects.toThrow();
  await hold.unlock();
  expect(outcomes()).toEqual(ended);
});

test("by default it records with the global API, which does nothing unless it is set up", async () => {
  await using client = new LockClient(server.connect(), UNHURRIED);
  const stop = instrument(client);
  await client.getLock("d").run(() => undefined);
  stop();
  expect(() => instrument({} as LockClient)).toThrow(TypeError);
  for (const options of [{ name: String }, { nameOf: "few" }])
    expect(() => instrument(client, options as object)).toThrow(TypeError);
});
