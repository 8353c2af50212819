// Runs each test of the bench once as it is, to hear which scripts it sends. Then it runs the test once for each mutant
// of these scripts that no test has noticed yet. All runs of a file share one process and one server, since a test
// begins by putting the server into a state. So a mutant costs what its tests cost, and no start of anything.
import fc from "fast-check";
import { VitestTestRunner } from "vitest/runners";
import { getFn } from "vitest/suite";
import { mutantsIn } from "./mutants.mjs";
import { readSources, Scripts } from "./scripts.mjs";

class Mutants {
  /** @type {Map<string, import("./scripts.mjs").Texts>} */
  #live = new Map();
  /** @type {import("./scripts.mjs").Texts | undefined} */
  #current;
  #heard = new Set();

  constructor({ root, ids }) {
    const sources = readSources(root);
    const scripts = new Scripts(sources);
    const chosen = new Set(ids);
    for (const { id, file, source } of mutantsIn(sources)) {
      if (chosen.has(id)) this.#live.set(id, scripts.textsWith(file, source));
    }
    // The bench asks for each script that it sends.
    globalThis.holdfastReplacedScript = (name) => {
      this.#heard.add(name);
      return this.#current?.get(name);
    };
  }

  /** Runs a test, and returns the mutants that it notices. */
  async play(fn) {
    this.#heard.clear();
    await fn();
    const names = [...this.#heard];
    const noticed = [];
    for (const [id, texts] of this.#live) {
      if (!names.some((name) => texts.has(name))) continue;
      this.#current = texts;
      try {
        await fn();
      } catch {
        noticed.push(id);
        this.#live.delete(id);
      } finally {
        this.#current = undefined;
      }
    }
    // What a mutant has left behind must not be what the next ones are noticed by.
    if (noticed.length > 0) await fn();
    return noticed;
  }
}

/** One for all files: they share this process. */
function mutants() {
  if (globalThis.holdfastMutants === undefined) {
    globalThis.holdfastMutants = new Mutants(JSON.parse(process.env.HOLDFAST_MUTANTS));
    fc.configureGlobal({ seed: 1, endOnFailure: true });
  }
  return globalThis.holdfastMutants;
}

export default class MutantRunner extends VitestTestRunner {
  async runTask(test) {
    test.meta.noticed = await mutants().play(getFn(test));
  }
}
