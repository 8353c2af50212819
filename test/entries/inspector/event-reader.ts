/** Reads server-sent events. */
import { until } from "../../support/index.js";

export interface ServerEvent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  readonly data: any;
}

export class EventReader {
  readonly seen: ServerEvent[] = [];
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  over = false;

  constructor(response: Response) {
    if (!response.body) throw new Error("no body");
    this.#reader = response.body.getReader();
    this.#read().catch(() => {});
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

  /** The first event of that name, now or later, whose data fit. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent
  async find(event: string, fits: (data: any) => unknown = () => true): Promise<any> {
    const found = await until(`an event ${event}`, () => {
      return this.seen.find((each) => each.event === event && fits(each.data));
    });
    return found?.data;
  }

  async stop(): Promise<void> {
    await this.#reader.cancel();
  }
}
