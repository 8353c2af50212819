import { expect, test } from "vitest";
import { decode, decodeCommand, encodeCommand, FrameReader } from "./resp.js";

const samples: [bytes: string, value: unknown][] = [
  ["+OK\r\n", "OK"],
  ["-ERR no\r\n", new Error("ERR no")],
  [":-12\r\n", -12],
  ["$-1\r\n", null],
  ["$0\r\n\r\n", ""],
  ["$5\r\na\r\n*1\r\n", "a\r\n*1"],
  ["*-1\r\n", null],
  ["*0\r\n", []],
  ["*2\r\n$1\r\na\r\n*1\r\n:1\r\n", ["a", [1]]],
  ["%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n", ["k", [1, 2]]],
  [">2\r\n+message\r\n_\r\n", ["message", null]],
  ["|1\r\n+ttl\r\n:3\r\n#t\r\n", true],
  [",1.5\r\n", "1.5"],
  ["(123456789012345678901\r\n", "123456789012345678901"],
  ["=7\r\ntxt:abc\r\n", "abc"],
  ["!6\r\nERR xy\r\n", new Error("ERR xy")],
];

test("values of RESP2 and RESP3 are found however the bytes are split", () => {
  const bytes = Buffer.from(samples.map(([text]) => text).join(""));
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader();
    const frames: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size)
      frames.push(...reader.push(bytes.subarray(at, at + size)));
    expect(frames.map(String)).toEqual(samples.map(([text]) => text));
    expect(frames.map(decode)).toEqual(samples.map(([, value]) => value));
    expect(reader.takeRest()).toHaveLength(0);
  }
});

test("commands are read back, inline ones too", () => {
  expect(decodeCommand(encodeCommand(["set", "ä", 1]))).toEqual(["SET", "ä", "1"]);
  expect(decodeCommand(Buffer.from("ping  x\r\n"))).toEqual(["PING", "x"]);
});
