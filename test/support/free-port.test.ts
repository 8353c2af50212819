import { createServer } from "node:net";
import { expect, test } from "vitest";
import { freePort, releasePort } from "./index.js";

test("a port is lent once, and again only when it was given back", async () => {
  const ports = await Promise.all(Array.from({ length: 60 }, freePort));
  expect(new Set(ports).size).toBe(60);
  const [first = 0] = ports;
  releasePort(first);
  releasePort(first); // has no effect
  releasePort(6379); // neither has this
  const more = await Promise.all(Array.from({ length: 60 }, freePort));
  expect(more.filter((port) => ports.includes(port) && port !== first)).toEqual([]);
  expect(more.filter((port) => port === first).length).toBeLessThanOrEqual(1);
  expect(more).not.toContain(6379);
  for (const port of [...ports, ...more]) releasePort(port);
});

test("a port that somebody took is passed over", async () => {
  const port = await freePort();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
  releasePort(port);
  const ports = await Promise.all(Array.from({ length: 100 }, freePort));
  expect(ports).not.toContain(port);
  await new Promise((resolve) => other.close(resolve));
});
