// `npm run docs`: makes the site of the documentation in out/site; config.ts says how. With --serve it is shown afterwards.
import { rmSync } from "node:fs";
import { basename, join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Application } from "typedoc";
import { build, serve } from "vitepress";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DOCS = join(ROOT, "docs");
const SITE = join(ROOT, "out/site");
const GENERATED = join(ROOT, "out/docs");

/** The reference: a page for each thing that an entry point exports, of its types and comments. */
async function writeReference() {
  const app = await Application.bootstrapWithPlugins({
    plugin: ["typedoc-plugin-markdown", "typedoc-vitepress-theme"],
    entryPoints: ["src/index.ts", "src/entries/!(cli).ts"].map((path) => join(ROOT, path)),
    tsconfig: join(ROOT, "tsconfig.json"),
    // `npm run check` does that.
    skipErrorChecking: true,
    basePath: ROOT,
    readme: "none",
    name: "All types",
    // What the entry points do not export, users cannot name.
    validation: { notExported: false, invalidLink: true },
    disableSources: true,
    excludePrivate: true,
    excludeExternals: true,
    router: "member",
    navigation: { includeFolders: false },
    entryFileName: "index",
    hidePageHeader: true,
    hideBreadcrumbs: false,
    out: join(GENERATED, "reference"),
    docsRoot: GENERATED,
    useCodeBlocks: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    typeAliasPropertiesFormat: "table",
    enumMembersFormat: "table",
  });
  // By the names that users import.
  app.converter.on("resolveBegin", ({ project }) => {
    for (const module of project.children ?? []) {
      const entry = basename(module.name);
      module.name = entry === "src" ? "holdfast" : `holdfast/${entry}`;
    }
  });
  const project = await app.convert();
  if (!project) throw new Error("the types cannot be read");
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error("typedoc's words are above");
}

async function main() {
  const begun = performance.now();
  for (const folder of [GENERATED, SITE]) rmSync(folder, { recursive: true, force: true });
  await writeReference();
  await build(DOCS);
  console.log(`out/site: made in ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  if (process.argv.includes("--serve")) await serve({ root: DOCS });
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
