/** Writes what a command has to say: for people as text and tables, for programs as JSON. */
import type { Readable, Writable } from "node:stream";

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow";

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };
const CLEARED = "\u001b[H\u001b[J";

export class Terminal {
  readonly streams: Streams;
  /** True if only JSON goes to stdout. */
  readonly isJson: boolean;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #hasColours: boolean;

  constructor(streams: Streams, isJson: boolean, environment: NodeJS.ProcessEnv) {
    this.streams = streams;
    this.isJson = isJson;
    this.#environment = environment;
    this.#hasColours = streams.stdout.isTTY === true && !environment.NO_COLOR && environment.TERM !== "dumb";
  }

  /** Whether a person is there, though not all streams need lead to them. */
  get isAttended(): boolean {
    const { stdin, stdout, stderr } = this.streams;
    return [stdin, stdout, stderr].some(({ isTTY }) => isTTY === true);
  }

  /** Writes a line for people. */
  say(line = "", ...styles: readonly Style[]): void {
    if (!this.isJson) this.streams.stdout.write(`${this.#paint(plain(line), styles)}\n`);
  }

  /** Writes to stderr what went wrong, or what else a person at the terminal has to know. */
  tell(line: string): void {
    this.streams.stderr.write(`holdfast: ${plain(line)}\n`);
  }

  /** Writes a document in one line, if JSON was asked for. */
  json(value: unknown): void {
    if (this.isJson) this.streams.stdout.write(`${JSON.stringify(value, exact)}\n`);
  }

  /** Clears the screen, if stdout is a terminal. */
  clear(): void {
    if (!this.isJson && this.streams.stdout.isTTY) this.streams.stdout.write(CLEARED);
  }

  #paint(text: string, styles: readonly Style[]): string {
    if (!this.#hasColours || text === "" || styles.length === 0) return text;
    return `\u001b[${styles.map((style) => CODES[style]).join(";")}m${text}\u001b[0m`;
  }

  /** Writes rows in columns; the first is the head. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    const all = [head, ...rows].map((row) => row.map(plain));
    const widths = head.map((_, i) => all.reduce((wide, row) => Math.max(wide, row[i]?.length ?? 0), 0));
    for (const [i, row] of all.entries()) {
      const line = row.map((cell, k) => (k < row.length - 1 ? cell.padEnd(widths[k] ?? 0) : cell)).join("  ");
      this.say(line, ...(i === 0 ? (["dim"] as const) : []));
    }
  }

  /** Says to the same person, on stderr, what a question is about: that is where {@link ask} asks, wherever stdout leads. */
  get onStderr(): Terminal {
    const { stdin, stderr } = this.streams;
    return new Terminal({ stdin, stdout: stderr, stderr }, false, this.#environment);
  }

  /** Asks a person; resolves with "" where nobody sits. */
  async ask(question: string): Promise<string> {
    const { createInterface } = await import("node:readline/promises");
    const { stdin, stderr } = this.streams;
    // The terminal edits the line itself, and makes signals of Ctrl-C and Ctrl-\ as everywhere else; readline would take
    // them for an answer.
    const dialogue = createInterface({ input: stdin, output: stderr, terminal: false });
    try {
      // At the end of the input there is no answer.
      const ended = new Promise<string>((resolve) => dialogue.once("close", () => resolve("")));
      return await Promise.race([dialogue.question(question), ended]);
    } finally {
      dialogue.close();
    }
  }
}

/** Escapes control characters: anybody may have written a name into Redis, and nothing in it may move the cursor. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** Milliseconds as people say them: `31 s`, `4 min 10 s`, `2 h 5 min`. */
export function spell(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return ms < 1_000 ? `${Math.max(0, Math.round(ms))} ms` : `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function exact(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
