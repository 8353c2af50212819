/**
 * Each port, for a server or a proxy, is lent to one test of one process at a time. A client that still tries to reach
 * a killed server must not reach the server of another test. Each process takes whole blocks of ports. It guards a
 * block by listening on the block's first port, which ends with the process, however that ends.
 *
 * All ports lie below the range that Linux gives to outgoing connections, so a restarted server finds its port free.
 */
import { createServer, type Server } from "node:net";

const LOWEST = 10_000;
const BLOCKS = 250;
const BLOCK_SIZE = 40;
/** The bus of a cluster node listens this far above its port; the blocks end below the first bus. */
const BUS_OFFSET = 10_000;
const ATTEMPTS = 500;

/** Ports of our blocks that are not lent now, the longest unused first. */
const unused: number[] = [];
const lent = new Set<number>();

/** A port of 127.0.0.1 that is free, and whose cluster bus port is free too. */
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

/** Takes a port back, to lend it again. Ports that `freePort` has not lent are ignored. */
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
