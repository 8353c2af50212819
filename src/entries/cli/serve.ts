/** `holdfast inspector`: the page, on this machine alone. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { LONGEST_TIMER } from "../../base/platform.js";
import { isLocal } from "../inspector/access.js";
import { createInspector, nodeHandler } from "../inspector.js";
import { type Command, integerOf } from "./command.js";
import { pause } from "./pause.js";

const LOCALHOST = "127.0.0.1";

export const inspector: Command = {
  name: "inspector",
  usage: "",
  summary: "serves a web page of all locks, on this machine, until Ctrl-C",
  details: ["With --unlock the page can take locks away. Every user of this machine can reach it."],
  options: {
    port: { type: "string", short: "p", value: "N", help: "the port; 7077 by default, 0 for any" },
    unlock: { type: "boolean", help: "offers to take locks away" },
  },
  words: { least: 0, most: 0 },
  act: async ({ connect, options, terminal, signal }) => {
    const port = integerOf(options, "port", [0, 65_535]) ?? 7_077;
    // Who may look without --unlock may unlock with it: nobody comes by a proxy, which would ask for no password.
    const page = createInspector(connect().client, options.unlock === true ? { authorize: isLocal } : {});
    const handle = nodeHandler(page);
    const web = createServer((request, response) => void handle(request, response));
    web.listen(port, LOCALHOST);
    try {
      await once(web, "listening");
      const url = `http://localhost:${(web.address() as AddressInfo).port}/`;
      terminal.json({ url });
      terminal.say(`${url} shows the locks. Ctrl-C ends it.`);
      for (;;) await pause(LONGEST_TIMER, signal);
    } finally {
      web.close();
      web.closeAllConnections();
    }
  },
};
