/** What a command is, and how its arguments are read. */
import type { Keyspace } from "./keyspace.js";
import { parseInteger } from "./numbers.js";
import { NOT_INTEGER, type Reply, ReplyError } from "./reply.js";

/** Runs a command on its arguments, without its name. @throws ReplyError */
export type Run = (keys: Keyspace, args: readonly string[]) => Reply;

export interface Command {
  /** Arguments, its name included; negative: at least as many. */
  readonly arity: number;
  readonly run: Run;
}

/** The commands by name, in small letters. */
export type Commands = Readonly<Record<string, Command>>;

/** @throws ReplyError */
export function integer(text: string | undefined): bigint {
  const value = parseInteger(text ?? "");
  if (value === undefined) throw new ReplyError(NOT_INTEGER);
  return value;
}

/** The part of a list from `start` to `stop`, both included; negative ones count from its end. */
export function rangeOf(start: bigint, stop: bigint, size: number): readonly [from: number, to: number] {
  const at = (index: bigint) => Number(index < 0n ? BigInt(size) + index : index);
  return [Math.max(0, at(start)), Math.min(size, at(stop) + 1)];
}
