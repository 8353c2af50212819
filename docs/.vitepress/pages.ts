/** Which files are pages of the site, under which address, and in what order the menu names them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));
/** What is written for the site alone: a page for each example (examples.ts), and the reference (build.mjs). Ignored by git. */
export const GENERATED = "out/docs";

/** A line of the menu. `page` is a file from the root of the repository, with or without a chapter. */
export interface Entry {
  readonly text: string;
  readonly page: string;
}

export interface Group {
  readonly text: string;
  /** Where the name of the group leads, if anywhere. */
  readonly page?: string;
  readonly entries: readonly Entry[];
}

const entry = (text: string, page: string): Entry => ({ text, page });

/** The decisions, each by its heading: "1. Owners follow the async context". */
function decisions(): Entry[] {
  const files = readdirSync(join(ROOT, "docs/adr")).sort();
  return files.map((file) => {
    const page = `docs/adr/${file}`;
    return entry(/^# (.+)$/m.exec(readFileSync(join(ROOT, page), "utf8"))?.[1] ?? file, page);
  });
}

export const MENU: readonly Group[] = [
  {
    text: "Guide",
    page: "docs/guide.md",
    entries: [
      entry("What it is", "README.md"),
      entry("In one screen", "docs/guide.md#in-one-screen"),
      entry("Which kind", "docs/guide.md#which-kind"),
      entry("Whose lock it is", "docs/guide.md#whose-lock-it-is"),
      entry("Waiting and cancelling", "docs/guide.md#waiting-and-cancelling"),
      entry("Leases and the watchdog", "docs/guide.md#leases-and-the-watchdog"),
      entry("Readers and a writer", "docs/guide.md#readers-and-a-writer"),
      entry("Lost holds and fencing", "docs/guide.md#lost-holds-and-fencing"),
      entry("MultiLock", "docs/guide.md#many-locks-as-one-multilock"),
      entry("RedLock", "docs/guide.md#one-lock-over-many-masters-redlock"),
      entry("Semaphores and the latch", "docs/guide.md#semaphores-and-the-latch"),
      entry("Seeing what is held", "docs/guide.md#seeing-what-is-held"),
      entry("Errors", "docs/guide.md#errors"),
      entry("Common mistakes", "docs/common-mistakes.md"),
      entry("How it works", "docs/how-it-works.md"),
      entry("Whether Redis at all", "docs/decide.md"),
    ],
  },
  {
    text: "Recipes",
    entries: [entry("Recipes", "docs/recipes.md"), entry("Examples", "examples/README.md")],
  },
  {
    text: "Beside the core",
    entries: [
      entry("Express, Connect, Fastify", "docs/http.md"),
      entry("Nest", "docs/nestjs.md"),
      entry("Decorated methods", "docs/decorator.md"),
      entry("OpenTelemetry", "docs/otel.md"),
      entry("The inspector", "docs/inspector.md"),
      entry("Tests without Redis", "docs/testing.md"),
      entry("Web Locks", "docs/web-locks.md"),
      entry("redlock's face", "docs/migrate-redlock.md#the-same-calls-holdfastredlock"),
      entry("node-redis, iovalkey", "docs/node-redis.md"),
      entry("The program holdfast", "docs/cli.md"),
    ],
  },
  {
    text: "Operations",
    entries: [
      entry("Production", "docs/production.md"),
      entry("What to look at, what to do", "docs/operations.md"),
      entry("Scaling", "docs/scaling.md"),
      entry("What is in Redis", "docs/redis-data-model.md"),
      entry("Java beside Node", "docs/interop.md"),
    ],
  },
  {
    text: "Migrations",
    entries: [
      entry("From redlock", "docs/migrate-redlock.md"),
      entry("From redis-semaphore", "docs/migrate-redis-semaphore.md"),
      entry("From Redisson", "docs/migrate-redisson.md"),
    ],
  },
  {
    text: "Guarantees",
    entries: [
      entry("What is guaranteed, and not", "docs/guarantees.md"),
      entry("Faults", "docs/faults.md"),
      entry("Evidence", "docs/evidence.md"),
      entry("Bench", "bench/README.md"),
      entry("Bench: all tables", "bench/results/tables.md"),
    ],
  },
  {
    text: "Reference",
    entries: [
      entry("The API in short", "docs/api.md"),
      entry("Options", "docs/options.md"),
      entry("Events", "docs/events.md"),
      entry("All types", `${GENERATED}/reference/index.md`),
    ],
  },
  {
    text: "The project",
    entries: [
      entry("Architecture", "ARCHITECTURE.md"),
      entry("Contributing", "CONTRIBUTING.md"),
      entry("Security", "SECURITY.md"),
      entry("Changes", "CHANGELOG.md"),
      entry("Conduct", "CODE_OF_CONDUCT.md"),
    ],
  },
  { text: "Decisions", entries: decisions() },
];

/** `docs/guide.md` → `guide.md`, `README.md` → `index.md`, `bench/README.md` → `bench.md`: where the site has a page. */
export function addressOf(page: string): string {
  if (page === "README.md") return "index.md";
  if (page === "bench/README.md") return "bench.md";
  if (page === "examples/README.md") return "examples/index.md";
  const inside = [`${GENERATED}/`, "docs/"].find((folder) => page.startsWith(folder));
  return inside ? page.slice(inside.length) : page.toLowerCase();
}

/** Where a link on a page leads: to a page of the site, or to a file that the site has to bring along. */
export type Target = { readonly page: string } | { readonly file: string };

/** @param link as it stands in the Markdown, which leads through the repository: `../examples/fenced-write/main.mjs` */
export function targetOf(from: string, link: string): Target {
  const file = normalize(join(dirname(from), decodeURI(link)));
  if (file.endsWith(".md")) return { page: file };
  if (file === "docs/adr") return { page: MENU.at(-1)?.entries[0]?.page ?? "" };
  const [, example] = /^examples\/([^/]+?)(\.[a-z]+)?(\/.*)?$/.exec(file) ?? [];
  return example ? { page: `${GENERATED}/examples/${example}.md` } : { file };
}

/** The anchor of a heading, as GitHub makes it: a link to a chapter works there and here. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}
