/** How much there is now, as observable metrics. */
import type { Attributes, Meter, ObservableResult } from "@opentelemetry/api";

/** What one client has now: the attributes of each hold, permit or call. */
type Look = () => readonly Attributes[];

interface Series {
  readonly attributes: Attributes;
  count: number;
}

/** One gauge for all clients of a meter: of two callbacks that observe the same series, only the last one counts. */
class Gauge {
  readonly looks = new Set<Look>();
  /** The series of the last observation. A series that has ended is observed once more, as 0. */
  #before: ReadonlyMap<string, Series> = new Map();

  observe(result: ObservableResult): void {
    const now = new Map<string, Series>();
    for (const attributes of [...this.looks].flatMap((look) => look())) {
      const id = JSON.stringify(attributes);
      const series = now.get(id) ?? { attributes, count: 0 };
      series.count++;
      now.set(id, series);
    }
    for (const [id, { attributes }] of this.#before) if (!now.has(id)) result.observe(0, attributes);
    for (const { attributes, count } of now.values()) result.observe(count, attributes);
    this.#before = now;
  }
}

const GAUGES = new WeakMap<Meter, Map<string, Gauge>>();

/** Observes what `look` sees from now on, until the returned function is called. */
export function gauge(meter: Meter, name: string, description: string, look: Look): () => void {
  const gauges = GAUGES.get(meter) ?? new Map<string, Gauge>();
  GAUGES.set(meter, gauges);
  const gauge = gauges.get(name) ?? new Gauge();
  if (!gauges.has(name)) {
    gauges.set(name, gauge);
    meter.createObservableUpDownCounter(name, { description }).addCallback((result) => gauge.observe(result));
  }
  // A function of its own, so that a client that is instrumented twice is counted twice.
  const own = () => look();
  gauge.looks.add(own);
  return () => void gauge.looks.delete(own);
}
