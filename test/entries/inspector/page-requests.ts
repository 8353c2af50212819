/** Requests to an inspector as its page sends them, and what it tells who looks on. */
import { onTestFinished } from "vitest";
import { createInspector, type Inspector, type InspectorOptions } from "../../../src/entries/inspector.js";
import type { Hold, LockClient } from "../../../src/index.js";
import { until } from "../../support/index.js";
import { openVirtual, type VirtualPlace } from "../../support/place/index.js";

export const HERE = "http://localhost:3000/";

/** The inspector's client and another process, on a server in memory. */
export interface Scene extends Pick<VirtualPlace, "client" | "server" | "settle"> {
  readonly other: LockClient;
  inspect(options?: InspectorOptions): Inspector;
  /** By another process, unless `by` is given. */
  hold(name: string, by?: LockClient): Promise<Hold>;
}

export function open(): Scene {
  const { client, rivals: other, server, settle } = openVirtual();
  const inspect = (options?: InspectorOptions) => createInspector(client, options);
  const hold = (name: string, by = other) => by.getLock(name).lock();
  return { client, server, settle, other, inspect, hold };
}

export const allow = (): boolean => true;

export function get(
  inspector: Inspector,
  path = "",
  headers: Record<string, string> = {},
): Promise<Response> {
  return inspector(new Request(new URL(path, HERE), { headers }));
}

export function tokenIn(page: string): string {
  return /<meta name="holdfast-csrf" content="([^"]+)">/.exec(page)?.[1] ?? "";
}

export async function tokenOf(inspector: Inspector): Promise<string> {
  return tokenIn(await (await get(inspector)).text());
}

/** Asks for an unlock; resolves with the status and the answer, if that is one. */
export async function unlock(
  inspector: Inspector,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<[status: number, answer?: unknown]> {
  const all = {
    origin: new URL(HERE).origin,
    "content-type": "application/json",
    "x-holdfast-csrf": await tokenOf(inspector),
    ...headers,
  };
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const request = new Request(`${HERE}api/unlock`, { method: "POST", body: text, headers: all });
  const response = await inspector(request);
  return response.status === 200 ? [200, await response.json()] : [response.status];
}

interface Entry {
  readonly what: string;
  readonly name: string;
  readonly ownerId: string;
  readonly held?: number;
  readonly seen?: number;
}

/** One who looks on: reads server-sent events. */
export class Viewer {
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  readonly seen: { readonly event: string; readonly data: any }[] = [];
  over = false;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(response: Response) {
    if (!response.body) throw new Error("no body");
    this.#reader = response.body.getReader();
    this.#read().catch(() => {});
  }

  static async of(inspector: Inspector): Promise<Viewer> {
    const viewer = new Viewer(await get(inspector, "api/events"));
    onTestFinished(() => viewer.stop());
    return viewer;
  }

  /** Like {@link of}, after the first look. */
  static async looking(inspector: Inspector): Promise<Viewer> {
    const viewer = await Viewer.of(inspector);
    await viewer.find("locks", ({ reset }) => reset);
    return viewer;
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) break;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const [, event = "", data = "null"] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
        this.seen.push({ event, data: JSON.parse(data) });
      }
    }
    this.over = true;
  }

  stop(): Promise<void> {
    return this.#reader.cancel();
  }

  /** The first event of that name, now or later, whose data fit. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  async find(event: string, fits: (data: any) => unknown = () => true): Promise<any> {
    const found = () => this.seen.find((each) => each.event === event && fits(each.data));
    return (await until(`an event ${event}`, found))?.data;
  }

  /** Resolves when it is told that a lock is there, or gone. */
  async shows(name: string, part: "changed" | "gone" = "changed"): Promise<void> {
    await this.find("locks", (data) => JSON.stringify(data[part] ?? []).includes(`"${name}"`));
  }

  /** Resolves with the entry when it is told that of a hold. */
  async learns(what: string, { ownerId }: Hold): Promise<Entry> {
    const isIt = (entry: Entry) => entry.what === what && entry.ownerId === ownerId;
    const entries = (await this.find("history", (told) => told.some(isIt))) as Entry[];
    return entries.find(isIt) as Entry;
  }

  /** All that it was told of a hold. */
  learnt({ ownerId }: Hold): string[] {
    const told = this.seen.filter(({ event }) => event === "history").flatMap(({ data }) => data as Entry[]);
    return told.filter((entry) => entry.ownerId === ownerId).map(({ what }) => what);
  }

  get looks(): number {
    return this.seen.filter(({ event }) => event === "locks").length;
  }
}
