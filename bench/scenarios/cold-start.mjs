// A fresh process each time: from its first import to its first lock. The floor is ioredis and two scripts.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const COLD = fileURLToPath(new URL("../lib/cold.mjs", import.meta.url));

async function measure({ servers, adapter }) {
  await servers[0].flush();
  const config = { servers: servers.map(({ host, port }) => ({ host, port })) };
  const child = fork(COLD, [adapter.file, JSON.stringify(config)], {
    env: { ...process.env, ...adapter.env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`a fresh process ended (${code})`)));
  });
}

export default {
  id: "cold-start",
  title: "cold start",
  order: 15,
  floors: ["raw"],
  processless: true,
  finer: 2,
  variants: [{ label: "first import to first lock" }],
  metrics: [
    { key: "toGrant", label: "import → first lock ms", ratio: true },
    { key: "toReady", label: "of it until connected ms", ratio: true },
    { key: "fromExec", label: "start of the process → first lock ms", ratio: true },
  ],
  measure,
};
