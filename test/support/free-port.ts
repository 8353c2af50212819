/**
 * Ports for servers and proxies, each lent to one test of one process at a time: a client that still knocks at a
 * killed server must not reach another test's. So each process takes whole blocks of ports and guards a block by
 * listening on its first one, which ends with the process, however that ends.
 *
 * All lie below the range that Linux gives to outgoing connections, so that a killed server finds its port again.
 */
import { createServer, type Server } from "node:net";

const LOWEST = 10_000;
const BLOCKS = 250;
const BLOCK_SIZE = 40;
/** How far above its port a cluster node's bus listens; the blocks end below the first bus. */
const BUS_OFFSET = 10_000;
const ATTEMPTS = 500;

/** Ports of our blocks that nobody has now, the longest unused first. */
const unused: number[] = [];
const lent = new Set<number>();

/** A port of 127.0.0.1 on which nobody listens, and neither on that of its cluster bus. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = unused.shift();
    if (port === undefined) await takeBlock();
    else if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) {
      lent.add(port);
      return port;
    }
  }
  throw new Error(`no free port between ${LOWEST} and ${LOWEST + BLOCKS * BLOCK_SIZE}`);
}

/** Gives a port back to be lent again. A port that `freePort` has not lent is none of its business. */
export function releasePort(port: number): void {
  if (lent.delete(port)) unused.push(port);
}

/** A server that listens on a free port. */
export async function listenOnFreePort(): Promise<{ readonly server: Server; readonly port: number }> {
  const port = await freePort();
  return { server: await listen(port), port };
}

/** Tries one block; nothing happens if another process has it. */
async function takeBlock(): Promise<void> {
  const first = LOWEST + BLOCK_SIZE * Math.floor(Math.random() * BLOCKS);
  try {
    const guard = await listen(first);
    guard.on("connection", (socket) => socket.destroy());
    guard.unref();
  } catch {
    return;
  }
  for (let port = first + 1; port < first + BLOCK_SIZE; port++) unused.push(port);
}

async function isFree(port: number): Promise<boolean> {
  try {
    const probe = await listen(port);
    await new Promise((resolve) => probe.close(resolve));
    return true;
  } catch {
    return false;
  }
}

function listen(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port, exclusive: true }, () => resolve(server));
  });
}
