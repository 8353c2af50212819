/** Runs a row of the table of consumers. */
import { join } from "node:path";
import manifest from "../../../../package.json" with { type: "json" };
import { fetchNode } from "../../../../tools/fetch-node.mjs";
import type { Consumer, PackedPackage } from "../consumer.js";
import { versionFolder } from "../versions/install.js";
import versions from "../versions/package.json" with { type: "json" };
import type { Row } from "./table.js";

/** Versions of the packages that are installed for the tests in any case. */
const HERE: Readonly<Record<string, string>> = { ...versions.dependencies, ...manifest.devDependencies };

/** Whether the row needs nothing from the registry. */
export function isLocal({ node, packages = {} }: Row): boolean {
  return node === undefined && Object.entries(packages).every(([name, version]) => HERE[name] === version);
}

/** The environment, not the consumer, is at fault: the row is skipped with this message. */
export class Unavailable extends Error {}

const UNREACHABLE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|E404|ETARGET|ENOSPC|network/;

/** Returns the output of all commands in order. @throws Unavailable if the registry does not deliver a package */
export async function runRow(row: Row, packed: PackedPackage, url: string): Promise<string> {
  const { commands, files, node, packages = {}, remove = [], type = "module" } = row;
  const consumer = await (isLocal(row) ? linked(packed, packages) : fetched(packed, packages));
  const program = node === undefined ? process.execPath : unlessAway(() => fetchNode(node));
  await consumer.write("package.json", JSON.stringify({ private: true, type }));
  for (const [name, source] of Object.entries(files)) await consumer.write(name, source);
  let printed = "";
  for (const [n, [first, ...args]] of commands.entries()) {
    // The last command runs a bundle, which has to work without the files that it was made of.
    if (n === commands.length - 1) for (const path of remove) await consumer.delete(path);
    printed += await consumer.run(first === "node" ? program : consumer.path(first), args, {
      REDIS_URL: url,
      // A program that starts `node` gets the same version.
      PATH: `${join(program, "..")}:${process.env.PATH}`,
    });
  }
  return printed;
}

function unlessAway<T>(get: () => T): T {
  try {
    return get();
  } catch (error) {
    throw new Unavailable((error as Error).message);
  }
}

async function linked(packed: PackedPackage, packages: NonNullable<Row["packages"]>): Promise<Consumer> {
  const consumer = await packed.install();
  for (const name of Object.keys(packages)) {
    await consumer.link(name, name in manifest.devDependencies ? undefined : versionFolder(name));
  }
  return consumer;
}

async function fetched(packed: PackedPackage, packages: NonNullable<Row["packages"]>): Promise<Consumer> {
  try {
    return await packed.fetch(Object.entries(packages).map(([name, version]) => `${name}@${version}`));
  } catch (error) {
    const { message } = error as Error;
    const [reason] = message.match(UNREACHABLE) ?? [];
    if (reason === undefined) throw error;
    throw new Unavailable(`npm install: ${reason}`);
  }
}
