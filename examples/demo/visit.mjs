// After the steps: the clerks go on at the speed of people, and the inspector shows it, until Ctrl-C.
import { once } from "node:events";
import { createServer } from "node:http";
import { createInspector, nodeHandler } from "holdfast/inspector";

/** Resolves with the URL of the page, on this machine alone. */
export async function openInspector(client) {
  const web = createServer(nodeHandler(createInspector(client, { every: 250 })));
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  return `http://localhost:${web.address().port}/`;
}

/** Those who still live. */
export function workOn(clerks) {
  for (const clerk of clerks) clerk.ask("workOn").catch(() => {});
}
