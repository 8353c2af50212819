/** A network that delivers one byte at a time, in both directions, changes nothing. */
import { createServer, type Socket, connect as tcp } from "node:net";
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { untilWaiting } from "../contract/helpers.js";
import { type Endpoint, forFile, freePort, releasePort, startRedis, UNHURRIED } from "../support/index.js";
import { SINGLE } from "../support/place/kinds.js";
import { failOnUnhandledRejections } from "./harness.js";

failOnUnhandledRejections();
const server = await forFile(startRedis());

/** Passes bytes on one at a time: each in its own turn of the event loop, and in its own packet. */
function drip(from: Socket, to: Socket): void {
  to.setNoDelay(true);
  from.on("error", () => to.destroy()).on("close", () => to.destroy());
  let sent = Promise.resolve();
  from.on("data", (bytes) => {
    for (const byte of bytes)
      sent = sent.then(async () => {
        to.write(Uint8Array.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      });
  });
}

async function startDrip(target: Endpoint) {
  const port = await freePort();
  const sockets = new Set<Socket>();
  const listener = createServer((near) => {
    const far = tcp(target.port, target.host);
    for (const socket of [near, far]) sockets.add(socket);
    drip(near, far);
    drip(far, near);
  });
  await new Promise<void>((resolve) => listener.listen(port, "127.0.0.1", resolve));
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => listener.close(resolve));
    releasePort(port);
  };
  return { host: "127.0.0.1", port, [Symbol.asyncDispose]: stop };
}

test("a lock is taken, waited for and given back once through a network that brings one byte at a time [F8]", async () => {
  await using way = await startDrip(server);
  await using ours = LockClient.connect({ host: way.host, port: way.port }, UNHURRIED);
  await using theirs = LockClient.connect({ host: way.host, port: way.port }, UNHURRIED);
  await Promise.all(
    SINGLE.slice(0, 2).map(async (kind) => {
      const name = `order of the ${kind.name}`;
      const hold = await kind.make([ours], name).lock();
      expect(await server.connect().hgetall(name)).toEqual(kind.fields(hold.ownerId, 1));
      const waiter = await untilWaiting(theirs, () => kind.rival.make([theirs], name).lock());
      await hold.unlock();
      const next = await waiter.done;
      expect(await server.connect().hgetall(name)).toEqual(kind.rival.fields(next.ownerId, 1));
      await next.unlock();
      expect(await server.call("EXISTS", name)).toBe(0);
    }),
  );
});
