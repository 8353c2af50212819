/** `holdfast/otel` as Prometheus scrapes it with OpenTelemetry's own exporter, and what the dashboard queries. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PrometheusExporter } from "@opentelemetry/exporter-prometheus";
import { MeterProvider } from "@opentelemetry/sdk-metrics";
import { expect, onTestFinished, test } from "vitest";
import { instrument } from "../../src/entries/otel.js";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { forFile, forTest, startRedis } from "../support/index.js";

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

/** A client whose metrics a local server offers, a scrape of it, and what each measured thing left there. */
async function scrape(): Promise<{ readonly text: string; readonly samples: readonly Sample[] }> {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  const meters = new MeterProvider({ readers: [exporter] });
  const [client, others] = [
    forTest(new LockClient(server.connect())),
    forTest(new LockClient(server.connect())),
  ];
  const stop = instrument(client, { meter: meters.getMeter("test") });
  const web = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
  await once(web.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    stop();
    web.close();
    await meters.shutdown();
  });
  await useLock(client, others);
  const { port } = web.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { connection: "close" } });
  expect(response.headers.get("content-type")).toContain("text/plain");
  const text = await response.text();
  return { text, samples: samplesOf(text) };
}

/** Makes each measured thing happen once, on the lock "a"; one hold and one waiter stay. */
async function useLock(client: LockClient, others: LockClient): Promise<void> {
  const lock = client.getLock("a");
  await lock.run(() => undefined);
  await lock.lock();
  await lock.forceUnlock();
  await others.getLock("a").lock();
  expect(await lock.tryLock()).toBeNull();
  expect(await lock.tryLock(400)).toBeNull();
  const waiter = await untilWaiting(client, () => lock.lock());
  waiter.done.catch(() => {}); // the end of the client
  await client.getLock("a too").lock();
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly Record<"expr" | "legendFormat", string>[] }[];
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

test("a scrape has each metric with its type, and times in seconds. Each query of the dashboard asks for metrics and labels that a scrape has [B49]", async () => {
  const { text, samples } = await scrape();
  const types = [...text.matchAll(/^# TYPE (holdfast_\w+ \w+)$/gm)].map(([, type]) => type);
  expect(types.sort()).toEqual([
    "holdfast_lock_held gauge",
    "holdfast_lock_hold histogram",
    "holdfast_lock_lost_total counter",
    "holdfast_lock_rejected_total counter",
    "holdfast_lock_wait histogram",
    "holdfast_lock_waiting gauge",
  ]);
  // The one wait that ran out lasted for 400 ms.
  const waited = samples.filter(
    ({ name, labels }) => name === "holdfast_lock_wait_sum" && labels.holdfast_outcome === "timeout",
  );
  expect(waited.map(({ value }) => value > 0.3 && value < 300)).toEqual([true]);
  const file = await readFile(new URL("../../docs/grafana-dashboard.json", import.meta.url), "utf8");
  const queries = (JSON.parse(file) as Dashboard).panels.flatMap(({ targets }) => targets);
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
});
