// Everything here, holdfast and floors too, runs on one ioredis, so that ratios are of locks and not of clients. It is
// that of bench/package.json, or the same version from the project's packages while the peers are not installed.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const own = fileURLToPath(new URL("../node_modules/ioredis", import.meta.url));
const name = existsSync(own) ? own : "ioredis5";

export const { Redis } = require(name);
export const { version } = require(`${name}/package.json`);
