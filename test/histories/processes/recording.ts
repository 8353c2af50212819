/** The records of processes as a history, with what may have happened to their holds without a call. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Operation, Outcome } from "../history.js";
import type { LockAnswer, LockCall, SemaphoreAnswer, SemaphoreCall } from "../specs.js";

type AnyCall = LockCall | SemaphoreCall;
type AnyAnswer = LockAnswer | SemaphoreAnswer;
type Recorded = Operation<AnyCall, AnyAnswer>;

/** A line of a record: a call, or its answer. Instants are nanoseconds. */
interface Line {
  readonly id: number;
  readonly at: number;
  readonly name?: string;
  readonly caller?: string;
  readonly call?: AnyCall;
  /** For a release: whether the holder still believed in its hold. */
  readonly held?: boolean;
  readonly answer?: AnyAnswer & { readonly token?: string };
  /** For a grant: the earliest end of its lease, by the holder's clock. */
  readonly until?: number;
}

interface Entry {
  readonly invoked: Required<Pick<Line, "at" | "name" | "caller" | "call">> & Line;
  answered: Line | undefined;
}

const OPEN = Number.POSITIVE_INFINITY;

export function readRecordings(folder: string): Recorded[] {
  return readdirSync(folder).flatMap((file) => operationsOf(readEntries(join(folder, file))));
}

function readEntries(file: string): Entry[] {
  const entries = new Map<number, Entry>();
  // The last line of a killed process may be incomplete.
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  for (const text of lines) {
    const line = JSON.parse(text) as Line;
    const known = entries.get(line.id);
    if (known) known.answered = line;
    else entries.set(line.id, { invoked: line as Entry["invoked"], answered: undefined });
  }
  return [...entries.values()];
}

/** The holds of a caller on one side, as one entry for the outermost. */
interface Held {
  readonly entry: Entry;
  /** The earliest moment at which it may be over. */
  until: number;
  depth: number;
}

function operationsOf(entries: readonly Entry[]): Recorded[] {
  const holds = new Map<string, Held>();
  const operations: Recorded[] = [];
  for (const entry of entries) {
    const { name, caller, call, at, id } = entry.invoked;
    const isStranger = call.do === "acquire" && !entry.answered;
    // A grant without an answer is undone without touching the owner's other holds, so it counts as another caller's.
    const who = isStranger ? `${caller} (${id})` : caller;
    operations.push({ ...spanOf(entry), name, caller: who, call });
    if (isStranger) operations.push(environment(name, who, endOf(call), at));
    else note(entry, holds);
  }
  for (const { entry, until } of holds.values()) {
    const { name, caller, call } = entry.invoked;
    operations.push(environment(name, caller, endOf(call), until));
  }
  return operations;
}

function note(entry: Entry, holds: Map<string, Held>): void {
  const { invoked, answered } = entry;
  const { caller, call, held } = invoked;
  const key = `${caller} ${sideOf(call)}`;
  const known = holds.get(key);
  if (call.do === "acquire" && answered?.until !== undefined) {
    if (known) known.depth++;
    else holds.set(key, { entry, until: answered.until, depth: 1 });
  }
  if (call.do !== "release" || !known) return;
  if (held) known.until = invoked.at;
  const isReleased = answered?.answer && "released" in answered.answer && answered.answer.released;
  if (isReleased && --known.depth === 0) holds.delete(key);
}

/** How a hold, or permits, may end without a call of their holder. */
function endOf(call: AnyCall): AnyCall {
  return "permits" in call
    ? { do: "release", permits: call.permits as number }
    : { do: "expire", side: sideOf(call) };
}

function sideOf(call: AnyCall): "read" | "write" {
  return "side" in call && call.side ? call.side : "write";
}

function environment(name: string, caller: string, call: AnyCall, invoked: number): Recorded {
  return { name, caller, call, invoked, settled: OPEN, outcome: { kind: "unknown" } };
}

function spanOf({ invoked, answered }: Entry): {
  readonly invoked: number;
  readonly settled: number;
  readonly outcome: Outcome<AnyAnswer>;
} {
  if (!answered?.answer) return { invoked: invoked.at, settled: OPEN, outcome: { kind: "unknown" } };
  const { token, ...rest } = answered.answer;
  const answer = (token === undefined ? rest : { ...rest, token: BigInt(token) }) as AnyAnswer;
  return { invoked: invoked.at, settled: answered.at, outcome: { kind: "ok", answer } };
}
