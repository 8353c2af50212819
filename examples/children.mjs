// Every process that an example starts. None outlives it, however it ends.

const children = [];

/** To be called as soon as a child exists. */
export function own(child) {
  children.push(child);
  return child;
}

export function isAlive(child) {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** SIGKILL; resolves when the process is gone. */
export async function kill(child) {
  if (!isAlive(child)) return;
  // Not by once() of node:events: it rejects if a message to the dying process fails first.
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

export async function killAll() {
  await Promise.all(children.map(kill));
}

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
