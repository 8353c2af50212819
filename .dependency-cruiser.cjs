// Who may import whom. Values come one way, from the client down to the base, so that each layer can be loaded, read and
// tested with only the layers below it in mind. A call, its place in line, its grant and its kind are one idea in four
// folders: `knows` says which types, and no more, those see of each other.

// Top layer first. Above them stand index.ts, client.ts with its client-*.ts, and env.ts, which all locks of a client
// share. `may`: values and types; `knows`: types alone.
const LAYERS = {
  groups: {
    may: ["lock", "owner", "waiting", "redis", "base"],
    knows: ["env", "kinds", "pubsub"],
    comment:
      "A group is made of locks of any kind by what all locks share, so it makes none and knows no script.",
  },
  semaphores: {
    may: ["waiting", "watchdog", "redis", "scripts", "base"],
    knows: ["env", "kinds"],
    comment:
      "Permits have no owner: semaphores wait as locks do, and use nothing of what holds and owns locks.",
  },
  kinds: {
    may: ["waiting/wanted", "watchdog", "scripts", "base"],
    knows: ["env"],
    comment:
      "A kind is what calls want, and a table of scripts, keys and arguments: it decides nothing of waiting, owners or time.",
  },
  lock: {
    may: ["kinds/kind", "owner", "waiting", "watchdog", "redis", "scripts", "base"],
    knows: ["env", "pubsub"],
    comment: "What a lock does is the same for every kind, so it knows what a kind is, and none of them.",
  },
  waiting: {
    may: ["redis", "base"],
    knows: ["env", "kinds/kind", "lock", "pubsub", "scripts"],
    comment: "How a call waits is the same for locks, groups and permits: it calls them, and makes none.",
  },
  inspection: {
    may: ["presence", "redis", "scripts", "base"],
    knows: ["env"],
    comment:
      "Looking at locks is about what is in Redis, so it knows nothing of those that this process has.",
  },
  presence: {
    may: ["redis", "scripts", "base"],
    knows: ["env"],
    comment: "What a client tells of itself is given to it: it knows neither locks nor who waits.",
  },
  watchdog: {
    may: ["redis", "scripts", "base"],
    knows: ["env"],
    comment: "Renewal is told what to renew; it does not know who waits or who asked.",
  },
  pubsub: {
    may: ["redis", "base"],
    comment: "Messages are carried from channels to listeners without knowing locks or scripts.",
  },
  redis: {
    may: ["scripts", "base"],
    comment: "Talking to the server is about commands, replies and time, never about locks.",
  },
  scripts: {
    may: ["base"],
    comment: "Scripts are texts with typed arguments; sending them is the business of redis/.",
  },
  owner: {
    may: ["base"],
    knows: ["lock", "waiting"],
    comment: "Who is asking is a matter of the async context alone; no server is involved.",
  },
  base: { may: [], comment: "The base is what everybody may use, so it uses nobody." },
};

const outside = (folders) => ({ path: "^src/", pathNot: `^src/(${folders.join("|")})(/|[.]ts$)` });

const layerRules = Object.entries(LAYERS).flatMap(([layer, { may, knows = [], comment }]) => {
  const rule = { severity: "error", comment, from: { path: `^src/${layer}/` } };
  const values = { ...outside([layer, ...may]), dependencyTypesNot: ["type-only"] };
  return [
    { ...rule, name: `layer-${layer}`, to: values },
    { ...rule, name: `layer-${layer}-types`, to: outside([layer, ...may, ...knows]) },
  ];
});

module.exports = {
  forbidden: [
    ...layerRules,
    {
      name: "env-is-passed-down",
      severity: "error",
      comment:
        "What all locks of a client share is made with the client and given to them; nobody else makes one.",
      from: { path: "^src/", pathNot: "^src/client[.]ts$" },
      to: { path: "^src/env[.]ts$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "nothing-imports-index",
      severity: "error",
      comment: "index.ts is the list of what is public. Inside, a module is imported from where it is.",
      from: { path: "^src/", pathNot: "^src/entries/" },
      to: { path: "^src/index[.]ts$" },
    },
    {
      name: "entries-use-what-users-use",
      severity: "error",
      comment:
        "An entry point beside the root stands on the public API (or its errors alone), on other entries and on Node's own timers, so it can do nothing that a user could not.",
      from: {
        path: "^src/entries/",
        pathNot: "^src/entries/(testing([.]ts$|/)|otel[.]ts$|node-redis/|cli/doctor/)",
      },
      to: { path: "^src/", pathNot: "^src/(index[.]ts$|base/(errors|platform)[.]ts$|entries/)" },
    },
    {
      name: "doctor-tries-each-master",
      severity: "error",
      comment:
        "To try a lock on each master of a cluster it finds names in their slots, so of the inside it knows how keys have slots.",
      from: { path: "^src/entries/cli/doctor/" },
      to: { path: "^src/", pathNot: "^src/(index[.]ts$|base/platform[.]ts$|redis/slots[.]ts$|entries/)" },
    },
    {
      name: "telemetry-asks-what-there-is-now",
      severity: "error",
      comment:
        "Of the inside the entry for telemetry knows the method by which a client tells what it holds and waits for: not all of that ends by an event.",
      from: { path: "^src/entries/otel[.]ts$" },
      to: { path: "^src/", pathNot: "^src/(index[.]ts$|base/figures[.]ts$|entries/otel/)" },
    },
    {
      name: "testing-replaces-the-clock",
      severity: "error",
      comment:
        "The entry for tests gives the client a clock of its own, which users cannot. Of the inside it knows that option and no more.",
      from: { path: "^src/entries/testing([.]ts$|/)" },
      to: {
        path: "^src/",
        pathNot: "^src/(index[.]ts$|base/(platform|clock)[.]ts$|client-options[.]ts$|entries/testing/)",
      },
    },
    {
      name: "node-redis-is-a-connection",
      severity: "error",
      comment:
        "This entry makes what the core takes for a connection, so it knows that interface, and how keys have slots; nothing else of the inside.",
      from: { path: "^src/entries/node-redis/" },
      to: {
        path: "^src/",
        pathNot: "^src/(index[.]ts$|base/platform[.]ts$|entries/|redis/(connection|slots)[.]ts$)",
      },
    },
    {
      name: "nothing-needs-an-entry",
      severity: "error",
      comment: "What stands beside the root costs nothing to those who do not import it.",
      from: { path: "^src/", pathNot: "^src/entries/" },
      to: { path: "^src/entries/" },
    },
    {
      name: "no-folder-outside-the-layers",
      severity: "error",
      comment: "A new folder of src/ needs its place in the layers above, else no rule holds for it.",
      from: {
        path: "^src/",
        pathNot: `^src/((index|env|client[a-z-]*)[.]ts$|(${[...Object.keys(LAYERS), "entries"].join("|")})/)`,
      },
      to: {},
    },
    {
      name: "no-cycles",
      severity: "error",
      comment:
        "Modules that load each other get half a module, whichever is first. Types are gone by then, so they do not count.",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "nothing-unused",
      severity: "error",
      comment:
        "A module that index.ts does not reach is not part of the package, unless it is an entry beside it.",
      from: { path: "^src/index[.]ts$" },
      to: { path: "^src/", pathNot: "^src/entries/|[.]d[.]cts$", reachable: false },
    },
    {
      name: "src-stays-inside",
      severity: "error",
      comment: "What is published may not need tests, tools or examples.",
      from: { path: "^src/" },
      to: { path: "^(test|tools|bench|examples)/" },
    },
    {
      name: "ioredis-in-one-place",
      severity: "error",
      comment:
        "The connection is the user's and of either major version, whose classes are different types: it is accepted by " +
        "structure. Only `LockClient.connect` makes one, and the program `holdfast`. Its options are a type that both have.",
      from: { path: "^src/", pathNot: "^src/(redis/load-ioredis[.]cjs|entries/cli/server[.]ts)$" },
      to: { path: "(^|/)ioredis5?(/|$)", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "nanoid-in-one-place",
      severity: "error",
      comment: "All random ids are made in one file, so that their lengths and alphabets can be compared.",
      from: { path: "^src/", pathNot: "^src/base/ids[.]ts$" },
      to: { path: "(^|/)nanoid(/|$)" },
    },
    {
      name: "no-other-packages",
      severity: "error",
      comment: "Every runtime dependency is one that all users install.",
      from: { path: "^src/" },
      to: {
        dependencyTypesNot: ["local", "core", "unknown"],
        pathNot: "(^|/)(ioredis|eventemitter3|nanoid|@nestjs/common|@opentelemetry/api|fengari)(/|$)",
      },
    },
    {
      name: "nest-in-its-entry",
      severity: "error",
      comment: "Nest is there for those who import its entry, and for nobody else.",
      from: { path: "^src/", pathNot: "^src/entries/nestjs[.]ts$" },
      to: { path: "(^|/)@nestjs/" },
    },
    {
      name: "telemetry-in-its-entry",
      severity: "error",
      comment: "OpenTelemetry is there for those who import its entry, and for nobody else.",
      from: { path: "^src/", pathNot: "^src/entries/otel([.]ts$|/)" },
      to: { path: "(^|/)@opentelemetry/" },
    },
    {
      name: "lua-in-its-entry",
      severity: "error",
      comment: "The entry for tests carries a Lua of its own; to everybody else Lua is the server's.",
      from: { path: "^src/", pathNot: "^src/entries/testing/" },
      to: { path: "(^|/)fengari(/|$)" },
    },
    {
      name: "resolvable",
      severity: "error",
      comment: "An import that leads nowhere works on one machine only.",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
    },
  },
};
