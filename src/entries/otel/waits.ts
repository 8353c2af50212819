/** Who waits for what now, by the events of a client. */
import type { Attributes } from "@opentelemetry/api";
import type { LockEvent } from "../../index.js";

/** As many series as OpenTelemetry's SDKs keep of a metric by default. Where nobody collects them, more would pile up. */
const MOST_SERIES = 2_000;

/** The waits of one client, in series of attributes. */
export class Waits {
  /** Each that waits; without an owner, as semaphores have none, all that want the same. */
  readonly #waits = new Map<string, { count: number; readonly series: string }>();
  /** Those of which there was something to tell since it was told last: where nobody waits any more there are 0, once. */
  readonly #series = new Map<string, Attributes>();

  begin(event: LockEvent, attributes: Attributes): void {
    const series = this.#seriesOf(attributes);
    const id = this.#idOf(event);
    const wait = this.#waits.get(id);
    if (wait) wait.count++;
    else this.#waits.set(id, { count: 1, series });
  }

  end(event: LockEvent, attributes: Attributes): void {
    this.#seriesOf(attributes);
    this.#drop(this.#idOf(event), 1);
  }

  /** How many wait in each series, `most` in all: a wait that ended by an error has no event, and is the oldest one. */
  now(most: number): [Attributes, number][] {
    let surplus = [...this.#waits.values()].reduce((sum, { count }) => sum + count, 0) - most;
    for (const [id, { count }] of this.#waits) {
      if (surplus <= 0) break;
      this.#drop(id, surplus);
      surplus -= count;
    }
    const counts = new Map<string, number>();
    for (const { series, count } of this.#waits.values())
      counts.set(series, (counts.get(series) ?? 0) + count);
    return [...this.#series].map(([series, attributes]) => {
      const count = counts.get(series) ?? 0;
      if (count === 0) this.#series.delete(series);
      return [attributes, count];
    });
  }

  #drop(id: string, count: number): void {
    const wait = this.#waits.get(id);
    if (!wait) return;
    wait.count -= count;
    if (wait.count <= 0) this.#waits.delete(id);
  }

  #seriesOf(attributes: Attributes): string {
    const series = JSON.stringify(attributes);
    if (this.#series.has(series)) return series;
    const [oldest] = this.#series.keys();
    if (this.#series.size >= MOST_SERIES && oldest !== undefined) this.#series.delete(oldest);
    this.#series.set(series, attributes);
    return series;
  }

  #idOf({ kind, lockName, ownerId = "" }: LockEvent): string {
    return `${kind} ${ownerId} ${lockName}`;
  }
}
