/** `holdfast/otel` as Prometheus scrapes it with OpenTelemetry's own exporter, and what the dashboard queries. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { expect, test } from "vitest";
import { instrument } from "../../src/entries/otel.js";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { forFile, startRedis } from "../support/index.js";

const server = await forFile(startRedis());

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

/** The samples in Prometheus' text format, as far as exporters use it. */
function samplesOf(text: string): Sample[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const [, name = "", labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
    return { name, labels: Object.fromEntries(pairs) as Labels, value: Number(value) };
  });
}

/** A client whose metrics a local server offers, and a scrape of them. */
class Scraped implements AsyncDisposable {
  readonly client = new LockClient(server.connect());
  readonly #exporter = new PrometheusExporter({ preventServerStart: true });
  readonly #meters = new MeterProvider({ readers: [this.#exporter] });
  readonly #stop = instrument(this.client, { meter: this.#meters.getMeter("test") });
  readonly #web = createServer((request, response) => {
    this.#exporter.getMetricsRequestHandler(request, response);
  });

  async scrape(): Promise<{ readonly text: string; readonly samples: readonly Sample[] }> {
    if (!this.#web.listening) await once(this.#web.listen(0, "127.0.0.1"), "listening");
    const { port } = this.#web.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: "close" } });
    expect(response.headers.get("content-type")).toContain("text/plain");
    const text = await response.text();
    return { text, samples: samplesOf(text) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.client.close({ timeout: 0 });
    await this.#meters.shutdown();
    this.#web.close();
  }
}

/** Makes each measured thing happen once, on the lock with this name; one hold and one waiter stay. */
async function useLock(client: LockClient, name: string): Promise<() => Promise<void>> {
  const others = new LockClient(server.connect());
  const lock = client.getLock(name);
  await lock.run(() => undefined);
  await lock.lock();
  await lock.forceUnlock();
  const theirs = await others.getLock(name).lock();
  expect(await lock.tryLock()).toBeNull();
  expect(await lock.tryLock(2_500)).toBeNull();
  const waiter = await untilWaiting(client, () => lock.lock());
  const kept = await client.getLock(`${name} too`).lock();
  return async () => {
    await theirs.unlock();
    await (await waiter.done).unlock();
    await kept.unlock();
    await others.close();
  };
}

test("a scrape has each metric under its name and type, with its labels, in seconds", async () => {
  await using it = new Scraped();
  const end = await useLock(it.client, "a");
  const { text, samples } = await it.scrape();
  const types = [...text.matchAll(/^# TYPE (holdfast_\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]);
  expect(types.sort()).toEqual([
    ["holdfast_lock_held", "gauge"],
    ["holdfast_lock_hold", "histogram"],
    ["holdfast_lock_lost_total", "counter"],
    ["holdfast_lock_rejected_total", "counter"],
    ["holdfast_lock_wait", "histogram"],
    ["holdfast_lock_waiting", "gauge"],
  ]);
  const value = (name: string, more: Labels = {}) => {
    const labels = { holdfast_lock_name: "a", holdfast_lock_kind: "lock", ...more };
    const found = samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
    );
    expect(found).toHaveLength(1);
    return found[0]?.value;
  };
  expect(value("holdfast_lock_held", { holdfast_lock_name: "a too" })).toBe(1);
  expect(value("holdfast_lock_waiting")).toBe(1);
  expect(value("holdfast_lock_lost_total", { holdfast_outcome: "forced" })).toBe(1);
  expect(value("holdfast_lock_rejected_total")).toBe(1);
  expect(value("holdfast_lock_wait_count", { holdfast_outcome: "acquired" })).toBe(2);
  expect(value("holdfast_lock_hold_count", { holdfast_outcome: "released" })).toBe(1);
  expect(value("holdfast_lock_wait_bucket", { holdfast_outcome: "timeout", le: "0.1" })).toBe(0);
  expect(value("holdfast_lock_wait_bucket", { holdfast_outcome: "timeout", le: "+Inf" })).toBe(1);
  const waited = value("holdfast_lock_wait_sum", { holdfast_outcome: "timeout" });
  expect(waited).toBeGreaterThanOrEqual(0.3);
  expect(waited).toBeLessThan(300);
  await end();
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource: { readonly type: string; readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly legendFormat: string;
  }[];
}

interface Dashboard {
  readonly title: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
}

async function dashboard(): Promise<Dashboard> {
  return JSON.parse(await readFile(new URL("../../docs/grafana-dashboard.json", import.meta.url), "utf8"));
}

/** The parts of a query: its metrics, the labels it uses, and the labels it keeps. */
function readQuery(expr: string): { metrics: string[]; labels: string[]; left: string[] } {
  const left = (/\bby \(([^)]*)\)/.exec(expr)?.[1] ?? "").split(", ").filter((label) => label !== "");
  const body = expr.replace(/\bby \([^)]*\)/, "");
  const matched = [...body.matchAll(/\{(\w+)!?=/g)].map(([, label = ""]) => label);
  return {
    metrics: body.match(/\bholdfast_\w+(?=[[{)])/g) ?? [],
    labels: [...new Set([...left, ...matched])],
    left,
  };
}

/** The name that the Collector and Prometheus give a metric with a unit; this test's exporter leaves the unit out. */
function withUnit(metric: string): string {
  return metric.replace(/_(?:bucket|count|sum)$/, "_seconds$&");
}

test("each query of the dashboard asks for a metric and labels that a scrape has, with its unit in the name or not [B49]", async () => {
  await using it = new Scraped();
  const end = await useLock(it.client, "b");
  const { samples } = await it.scrape();
  const queries = (await dashboard()).panels.flatMap(({ targets }) => targets);
  expect(queries.length).toBeGreaterThanOrEqual(9);
  const asked = new Set<string>();
  for (const { expr, legendFormat } of queries) {
    const { metrics, labels, left } = readQuery(expr);
    const scraped = metrics.filter((metric) => samples.some(({ name }) => name === metric));
    expect([expr, scraped.length]).toEqual([expr, 1]);
    const [metric = ""] = scraped;
    asked.add(metric.replace(/_(?:bucket|count|sum|total)$/, ""));
    expect([expr, new Set(metrics)]).toEqual([expr, new Set([metric, withUnit(metric)])]);
    const known = samples.flatMap(({ name, labels: its }) => (name === metric ? Object.keys(its) : []));
    expect([expr, labels.filter((label) => !known.includes(label))]).toEqual([expr, []]);
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
    expect([expr, named.filter((label) => !left.includes(label))]).toEqual([expr, []]);
  }
  const all = ["wait", "hold", "held", "waiting", "lost", "rejected"];
  expect([...asked].sort()).toEqual(all.map((name) => `holdfast_lock_${name}`).sort());
  await end();
});

test("the dashboard is one that Grafana takes: panels with a place and a source of their own", async () => {
  const { panels, schemaVersion, templating, title } = await dashboard();
  expect([typeof title, schemaVersion >= 36]).toEqual(["string", true]);
  expect(templating.list).toContainEqual(
    expect.objectContaining({ name: "datasource", type: "datasource", query: "prometheus" }),
  );
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const taken = new Set<string>();
  for (const { datasource, gridPos, targets, title: named, type } of panels) {
    const { x, y, w, h } = gridPos;
    expect([named, type, datasource]).toEqual([
      named,
      "timeseries",
      { type: "prometheus", uid: `\${datasource}` },
    ]);
    expect([named, x >= 0 && x + w <= 24]).toEqual([named, true]);
    for (let column = x; column < x + w; column++) {
      for (let row = y; row < y + h; row++) {
        expect([named, taken.has(`${column} ${row}`)]).toEqual([named, false]);
        taken.add(`${column} ${row}`);
      }
    }
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
  }
});
