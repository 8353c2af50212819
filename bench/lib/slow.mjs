// A way to a server that takes longer: what comes from it is late.
import { connect, createServer } from "node:net";

/** Stands before a server: each of its bytes arrives `ms` late. Resolves with where to connect, and how to stop. */
export async function slowDown({ host, port }, ms) {
  const sockets = new Set();
  const proxy = createServer((near) => {
    const far = connect(port, host);
    for (const socket of [near, far]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.on("error", () => {});
    }
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.pipe(far);
    far.on("data", (bytes) => setTimeout(() => near.writable && near.write(bytes), ms));
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    host: "127.0.0.1",
    port: proxy.address().port,
    stop() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
