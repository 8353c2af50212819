// Checks the lock files. They must serve whoever installs from another registry: `.npmrc` leaves the addresses out. They
// must list the builds of a package for every system, else `npm ci` refuses them; npm itself leaves out what it could
// not fetch. And each package must have the hash by which npm knows that it got the right one.
// Usage: node tools/lock-files.mjs [--root DIR]
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const LOCK_FILES = [
  "package-lock.json",
  "bench/package-lock.json",
  "docs/package-lock.json",
  "test/delivery/package/versions/package-lock.json",
];

function mistakesOf({ packages }) {
  const paths = Object.keys(packages);
  const isListed = (name) => paths.some((path) => path.endsWith(`node_modules/${name}`));
  return Object.entries(packages).flatMap(([path, entry]) => {
    const { resolved = "", optionalDependencies = {} } = entry;
    const mistakes = /^[a-z+]+:\/\//.test(resolved) ? [`${path} names the host it came from`] : [];
    if (lacksHash(path, entry)) mistakes.push(`${path} has no integrity`);
    const missing = Object.keys(optionalDependencies).filter((name) => !isListed(name));
    return [...mistakes, ...missing.map((name) => `${name}, optional for ${path}, is not listed`)];
  });
}

/** The project itself and what lies inside of it or of another package has none. */
function lacksHash(path, { integrity, link, inBundle }) {
  return path.includes("node_modules/") && !integrity && !link && !inBundle;
}

const { values } = parseArgs({ options: { root: { type: "string" } } });
const root = values.root ?? fileURLToPath(new URL("..", import.meta.url));
for (const file of LOCK_FILES) {
  for (const mistake of mistakesOf(JSON.parse(readFileSync(join(root, file), "utf8")))) {
    console.error(`${file}: ${mistake}`);
    process.exitCode = 1;
  }
}
