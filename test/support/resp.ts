/**
 * The small part of RESP2 and RESP3 that the test tools need: where a value ends, and what it says.
 * Knows nothing of sockets, and reads a value that starts with an unknown byte as one line.
 */

export type RespValue = string | number | boolean | null | Error | RespValue[];

const CRLF = "\r\n";
/** Values that are a length, that many bytes and a line end: bulk string, bulk error, verbatim string. */
const BULKS = "$!=";
/** Values that are a count and that many values: array, set, push. Maps and attributes have twice as many. */
const LISTS = "*~>";

/** Cuts a stream of bytes into complete RESP values, however the network has split it. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** Takes more bytes in and returns the values that are now complete, as raw bytes. */
  push(chunk: Buffer): Buffer[] {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const frames: Buffer[] = [];
    let start = 0;
    for (let end = frameEnd(bytes, 0); end >= 0; end = frameEnd(bytes, start)) {
      frames.push(bytes.subarray(start, end));
      start = end;
    }
    this.#rest = bytes.subarray(start);
    return frames;
  }

  /** Returns the incomplete rest and forgets it, for a caller that goes on with raw bytes. */
  takeRest(): Buffer {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

/** The index after the value that starts at `start`, or -1 if it is not complete yet. */
function frameEnd(bytes: Buffer, start: number): number {
  const lineEnd = bytes.indexOf(CRLF, start);
  if (lineEnd < 0) return -1;
  const kind = String.fromCharCode(bytes[start] ?? 0);
  const size = Number(bytes.toString("latin1", start + 1, lineEnd));
  const body = lineEnd + 2;
  if (BULKS.includes(kind)) {
    const end = size < 0 ? body : body + size + 2;
    return end <= bytes.length ? end : -1;
  }
  if (LISTS.includes(kind)) return endOfMany(bytes, body, size);
  if (kind === "%") return endOfMany(bytes, body, size * 2);
  if (kind === "|") return endOfMany(bytes, body, size * 2 + 1); // an attribute comes before the value that it describes
  return body;
}

function endOfMany(bytes: Buffer, start: number, count: number): number {
  let end = start;
  for (let i = 0; i < count && end >= 0; i++) end = end < bytes.length ? frameEnd(bytes, end) : -1;
  return end;
}

/** The content of the complete value in `frame`. Maps become flat lists, as in RESP2; doubles become text. */
export function decode(frame: Buffer): RespValue {
  return decodeAt(frame, 0)[0];
}

function decodeAt(bytes: Buffer, start: number): [value: RespValue, end: number] {
  const lineEnd = bytes.indexOf(CRLF, start);
  const kind = String.fromCharCode(bytes[start] ?? 0);
  const line = bytes.toString("utf8", start + 1, lineEnd);
  const body = lineEnd + 2;
  if (BULKS.includes(kind)) {
    if (line === "-1") return [null, body];
    const end = body + Number(line);
    const text = bytes.toString("utf8", body, end);
    if (kind === "!") return [new Error(text), end + 2];
    return [kind === "=" ? text.slice(4) : text, end + 2]; // a verbatim string starts with "txt:"
  }
  if (LISTS.includes(kind)) return line === "-1" ? [null, body] : decodeMany(bytes, body, Number(line));
  if (kind === "%") return decodeMany(bytes, body, Number(line) * 2);
  if (kind === "|") return decodeAt(bytes, decodeMany(bytes, body, Number(line) * 2)[1]);
  return [decodeLine(kind, line), body];
}

function decodeMany(bytes: Buffer, start: number, count: number): [value: RespValue[], end: number] {
  const values: RespValue[] = [];
  let at = start;
  for (let i = 0; i < count; i++) {
    const [value, end] = decodeAt(bytes, at);
    values.push(value);
    at = end;
  }
  return [values, at];
}

function decodeLine(kind: string, line: string): RespValue {
  if (kind === ":") return Number(line);
  if (kind === "-") return new Error(line);
  if (kind === "#") return line === "t";
  if (kind === "_") return null;
  return line;
}

/**
 * The words of a client's command, the name in capitals. Clients send arrays of bulk strings; a bare line, as typed
 * into telnet, is split at its spaces.
 */
export function decodeCommand(frame: Buffer): string[] {
  const decoded = frame[0] === 0x2a ? decode(frame) : frame.toString().trim().split(/\s+/);
  const words = Array.isArray(decoded) ? decoded.map(String) : [];
  return words.map((word, i) => (i === 0 ? word.toUpperCase() : word));
}

/** A command as a client sends it. */
export function encodeCommand(words: readonly (string | number)[]): Buffer {
  const parts = words.map((word) => `$${Buffer.byteLength(String(word))}${CRLF}${word}${CRLF}`);
  return Buffer.from(`*${words.length}${CRLF}${parts.join("")}`);
}
