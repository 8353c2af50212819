/** What commands answer. Texts are one character per byte, as keys and values are everywhere in the server in memory. */

/** `+OK` and the like. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export const OK: Status = new Status("OK");

export type Reply = number | bigint | string | null | Status | ReplyError | readonly Reply[];

/** An error that the server tells. It has the name of the parser's errors in ioredis, by which this library knows them. */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

export const WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value";
export const NOT_INTEGER = "ERR value is not an integer or out of range";

/** The bytes of a text, as one character each. */
export function toBytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, "utf8").toString("latin1");
}

export function fromBytes(bytes: string): string {
  return /^[\0-\x7f]*$/.test(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}

/** A reply as ioredis gives it to its users: errors inside of lists stay where they are. */
export function toUser(reply: Reply): unknown {
  if (typeof reply === "string") return fromBytes(reply);
  if (typeof reply === "bigint") return Number(reply);
  if (reply instanceof Status) return reply.text;
  return Array.isArray(reply) ? reply.map(toUser) : reply;
}
