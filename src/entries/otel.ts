/** OpenTelemetry for a client: metrics and spans, made from the client's events and channels. */
import { tracingChannel } from "node:diagnostics_channel";
import {
  type Attributes,
  diag,
  type Meter,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import manifest from "../../package.json" with { type: "json" };
import { type About, NOW } from "../base/figures.js";
import type {
  HoldContext,
  LockCallContext,
  LockClient,
  LockEvent,
  LockEventName,
  LockListener,
} from "../index.js";
import { gauge } from "./otel/gauges.js";

/** Options of {@link instrument}. */
export interface InstrumentOptions {
  /** Makes the metrics. Default that of the global meter provider. */
  meter?: Meter | undefined;
  /** Makes the spans. Default that of the global tracer provider. */
  tracer?: Tracer | undefined;
  /**
   * The value of `holdfast.lock.name` for a lock. Each value is a series of its own, so map names with ids in them to
   * few values. Undefined leaves the attribute out, and so does a throw. Default the name as it is.
   */
  nameOf?: ((lockName: string) => string | undefined) | undefined;
}

const SCOPE = [manifest.name, manifest.version] as const;
const NAME = "holdfast.lock.name";
const KIND = "holdfast.lock.kind";
const OUTCOME = "holdfast.outcome";
/** Seconds: from a free lock on the same machine to a wait that somebody should look at. */
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000];

/**
 * Records waits, holds, losses and refusals of a client as metrics, and each call and hold as a span. Returns a
 * function that ends it. A client that is instrumented twice is counted twice.
 * @throws TypeError for what is no LockClient, and for unknown options
 * @example
 * const end = instrument(client);
 * await client.getLock("stock:42").run(() => sell("42"));
 * end();
 */
export function instrument(client: LockClient, options: InstrumentOptions = {}): () => void {
  if (typeof client?.[NOW] !== "function") throw new TypeError("instrument(client) takes a LockClient");
  if (typeof options !== "object" || options === null)
    throw new TypeError("instrument: options must be an object");
  const { meter, tracer, nameOf = (name) => name, ...others } = options;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new TypeError(`instrument: unknown option ${unknown}`);
  if (typeof nameOf !== "function") throw new TypeError("nameOf must be a function");
  const attributesOf = ({ lockName, kind }: About): Attributes => {
    const name = named(nameOf, lockName);
    return { [KIND]: kind, ...(name === undefined ? {} : { [NAME]: name }) };
  };
  const spans = tracer ?? trace.getTracer(...SCOPE);
  const stops = [
    ...measure(client, meter ?? metrics.getMeter(...SCOPE), attributesOf),
    follow<LockCallContext>("holdfast:lock", client, spans, attributesOf),
    follow<HoldContext>("holdfast:hold", client, spans, attributesOf),
  ];
  return () => {
    for (const stop of stops.splice(0)) stop();
  };
}

/** Catches what `nameOf` throws: a throw in a subscriber of a channel would end the process. */
function named(nameOf: (lockName: string) => string | undefined, lockName: string): string | undefined {
  try {
    return nameOf(lockName);
  } catch (error) {
    diag.error("holdfast: nameOf threw", error);
    return undefined;
  }
}

function measure(
  client: LockClient,
  meter: Meter,
  attributesOf: (about: About) => Attributes,
): (() => void)[] {
  const advice = { explicitBucketBoundaries: BUCKETS };
  const wait = meter.createHistogram("holdfast.lock.wait", {
    description: "From a call to its end.",
    unit: "s",
    advice,
  });
  const hold = meter.createHistogram("holdfast.lock.hold", {
    description: "From a grant to its end.",
    unit: "s",
    advice,
  });
  const lost = meter.createCounter("holdfast.lock.lost", {
    description: "Holds that ended before they were given back.",
  });
  const rejected = meter.createCounter("holdfast.lock.rejected", {
    description: "Single tries that failed because others held the lock.",
  });
  const seconds = (ms: number) => ms / 1_000;
  const end = (event: LockEvent, outcome: string, ms: number | undefined) => {
    if (ms !== undefined) hold.record(seconds(ms), { ...attributesOf(event), [OUTCOME]: outcome });
  };
  const ended = (event: LockEvent & { readonly waited: number }, outcome: string) => {
    wait.record(seconds(event.waited), { ...attributesOf(event), [OUTCOME]: outcome });
  };
  return [
    gauge(meter, "holdfast.lock.held", "Holds, and permits that this process keeps, now.", () =>
      client[NOW]().held.map(attributesOf),
    ),
    gauge(meter, "holdfast.lock.waiting", "Calls that wait now.", () =>
      client[NOW]().waiting.map(attributesOf),
    ),
    listen(client, "acquired", (event) => ended(event, "acquired")),
    listen(client, "gaveUp", (event) => ended(event, event.reason)),
    listen(client, "rejected", (event) => rejected.add(1, attributesOf(event))),
    listen(client, "released", (event) => end(event, "released", event.held)),
    listen(client, "lost", (event) => {
      lost.add(1, { ...attributesOf(event), [OUTCOME]: event.reason });
      end(event, "lost", event.held);
    }),
  ];
}

function listen<E extends LockEventName>(
  client: LockClient,
  event: E,
  listener: LockListener<E>,
): () => void {
  client.on(event, listener);
  return () => client.off(event, listener);
}

/** Makes a span for each call, a child of the span that is active at the call, or for each hold. */
function follow<C extends LockCallContext | HoldContext>(
  name: "holdfast:lock" | "holdfast:hold",
  client: LockClient,
  tracer: Tracer,
  attributesOf: (about: About) => Attributes,
): () => void {
  const spans = new WeakMap<object, Span>();
  const open = new Set<Span>();
  const channel = tracingChannel<unknown, C>(name);
  const handlers = {
    start(context: C) {
      if (context.clientId !== client.id) return;
      const options = { kind: SpanKind.CLIENT, attributes: attributesOf(context) };
      const made = tracer.startSpan(name.replace(":", "."), options);
      spans.set(context, made);
      open.add(made);
    },
    end() {
      // The span ends with the call, not with its first step.
    },
    asyncStart() {
      // As above.
    },
    asyncEnd(context: C) {
      const made = spans.get(context);
      if (!made) return;
      spans.delete(context);
      open.delete(made);
      if (context.outcome) made.setAttribute(OUTCOME, context.outcome);
      made.end();
    },
    error(context: C & { error?: unknown }) {
      const made = spans.get(context);
      const { error } = context;
      if (!made) return;
      // The reason of an abort may be anything, and only an Error has a text for the span.
      if (!(error instanceof Error)) return void made.setStatus({ code: SpanStatusCode.ERROR });
      made.recordException(error);
      made.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
    },
  };
  channel.subscribe(handlers);
  return () => {
    channel.unsubscribe(handlers);
    // Nobody follows these any more, and a span without an end is never exported.
    for (const made of open) made.end();
    open.clear();
  };
}
