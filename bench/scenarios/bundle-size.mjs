// What a bundler makes of each library: minified, and that compressed. The Redis clients are left out.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const CLIENTS = ["ioredis", "redis", "@redis/client"];
const HERE = fileURLToPath(new URL("..", import.meta.url));
const ROOT = dirname(HERE.replace(/\/$/, ""));

async function measure({ meta, adapter }) {
  const { build } = await import("esbuild");
  const home = adapter.env.HOLDFAST ?? process.env.HOLDFAST ?? ROOT;
  const entry = meta.isPeer ? meta.package : join(home, "dist/index.js");
  const { outputFiles } = await build({
    stdin: { contents: `export * as library from ${JSON.stringify(entry)};`, resolveDir: HERE },
    bundle: true,
    minify: true,
    write: false,
    platform: "node",
    format: "esm",
    external: CLIENTS,
    logLevel: "silent",
  });
  const [{ contents }] = outputFiles;
  return { minified: contents.length / 1_000, compressed: gzipSync(contents, { level: 9 }).length / 1_000 };
}

export default {
  id: "bundle-size",
  title: "bundle size",
  order: 16,
  floors: [],
  processless: true,
  repeats: 1,
  variants: [{ label: "all that is exported, without the Redis client" }],
  metrics: [
    { key: "minified", label: "minified kB" },
    { key: "compressed", label: "minified and gzip kB" },
  ],
  peers: ({ package: name }) => name !== undefined,
  measure,
};
