/** The package's types under the compilers that users have, from the oldest supported one to the newest. attw sees whether each finds them. */
import manifest from "../../../../package.json" with { type: "json" };
import * as programs from "../programs.js";
import versions from "../versions/package.json" with { type: "json" };
import type { Row } from "./table.js";

/** By their names in the package.json of test/delivery/package/versions. */
const COMPILERS = ["typescript5.2", "typescript5.9", "typescript6", "typescript7"] as const;

const { ioredis, ioredis5, "@types/node": node } = manifest.devDependencies;
const TYPED = { ioredis, ioredis5, "@types/node": node };

/** Entries whose types need a package of others. */
const OF_OTHERS = ["nestjs", "otel"];
const { "@nestjs/common": nest, "@opentelemetry/api": otel } = manifest.devDependencies;
const OTHERS = { "@nestjs/common": nest, "@opentelemetry/api": otel };
const ENTRIES = Object.keys(manifest.exports)
  .filter((path) => !/^[.]$|[.]json$/.test(path))
  .map((path) => path.slice("./".length));
const importAll = (entries: readonly string[]): string =>
  programs.IMPORT_ALL(["holdfast", ...entries.map((entry) => `holdfast/${entry}`)]);

interface Way {
  readonly name: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly options: object;
  readonly files: Readonly<Record<string, string>>;
  /** The id of a bug that it shows. */
  readonly shows?: string;
  /** The first compiler that knows these options. Default: the oldest. */
  readonly since?: number;
}

const bothForms: Way = {
  name: "node16",
  shows: " [B268] [B279]",
  packages: TYPED,
  options: { module: "node16" },
  files: {
    "typed.mts": programs.TYPED,
    "typed.cts": programs.TYPED,
    "redlock.mts": programs.TYPED_REDLOCK,
    "redlock.cts": programs.TYPED_REDLOCK,
    "narrowed.mts": programs.NARROWED,
    "narrowed.cts": programs.NARROWED,
    ...programs.EXCHANGED,
  },
};

const WAYS: readonly Way[] = [
  bothForms,
  {
    name: "bundler, by import and by require",
    shows: " [B268]",
    packages: TYPED,
    options: { module: "preserve", moduleResolution: "bundler" },
    files: { "one.ts": programs.EXCHANGED_IN_ONE },
    since: 5.4,
  },
  {
    name: "node10",
    packages: { ...TYPED, ...OTHERS },
    options: { module: "commonjs", moduleResolution: "node10" },
    files: {
      "typed.ts": programs.TYPED,
      "redlock.ts": programs.TYPED_REDLOCK,
      "narrowed.ts": programs.NARROWED,
      "entries.ts": importAll(ENTRIES),
    },
  },
  {
    name: "without @types/node",
    packages: {},
    options: { module: "nodenext", lib: ["es2022", "esnext.disposable", "dom"], types: [] },
    files: {
      // The types of ioredis need those of Node; ours do not.
      "ioredis.d.ts": 'declare module "ioredis" { type RedisOptions = object }',
      "narrowed.mts": programs.NARROWED,
      "entries.mts": importAll(ENTRIES.filter((entry) => !OF_OTHERS.includes(entry))),
    },
  },
];

function versionOf(compiler: (typeof COMPILERS)[number]): string {
  return versions.dependencies[compiler].replace("npm:typescript@", "");
}

function row(compiler: (typeof COMPILERS)[number], way: Way): Row {
  const version = versionOf(compiler);
  const [major = ""] = version.split(".");
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "esnext.disposable"],
    types: ["node"],
    strict: true,
    skipLibCheck: false,
    // What TypeScript itself brings; to check the declarations of the DOM takes longer than all of ours.
    skipDefaultLibCheck: true,
    noEmit: true,
    ...way.options,
    // TypeScript 6 deprecates the resolution of Node 10.
    ...(major === "6" ? { ignoreDeprecations: "6.0" } : {}),
  };
  return {
    name: `TypeScript ${version}: ${way.name}${way.shows ?? ""}`,
    packages: { ...way.packages, [compiler]: versions.dependencies[compiler] },
    files: {
      ...way.files,
      "tsconfig.json": JSON.stringify({ compilerOptions, files: Object.keys(way.files) }),
    },
    commands: [["node", `node_modules/${compiler}/bin/tsc`, "-p", "."]],
    prints: "",
    impossible: way.name === "node10" && major === "7" ? "TypeScript 7 has no node10" : undefined,
    // By default the oldest and the newest compiler, and two ways.
    long:
      !["node16", "without @types/node"].includes(way.name) ||
      (compiler !== COMPILERS[0] && compiler !== COMPILERS.at(-1)),
  };
}

export const TYPESCRIPT: readonly Row[] = COMPILERS.flatMap((compiler) =>
  WAYS.filter(({ since = 0 }) => Number.parseFloat(versionOf(compiler)) >= since).map((way) =>
    row(compiler, way),
  ),
);
