// Counts the commands that the clients of this process send: one EVALSHA is one, whatever it calls inside. Connections
// with UNCOUNTED set, those of the bench itself, are left out.
import { createRequire } from "node:module";
import { Redis } from "./ioredis.mjs";

export const UNCOUNTED = Symbol("uncounted");

let sent = 0;
export const sentCommands = () => sent;

const send = Redis.prototype.sendCommand;
Redis.prototype.sendCommand = function (command, stream) {
  if (!this[UNCOUNTED]) sent++;
  return send.call(this, command, stream);
};

export function countNodeRedis() {
  const require = createRequire(import.meta.url);
  const { prototype } = require("@redis/client/dist/lib/client/commands-queue.js").default;
  const add = prototype.addCommand;
  prototype.addCommand = function (args, options) {
    sent++;
    return add.call(this, args, options);
  };
}
