// A process imports this before all other modules, to get the library with one mistake in it.
import { register } from "node:module";
import { MUTANTS } from "../../exclusion/planted/mutants.mjs";

const data = MUTANTS[process.env.HOLDFAST_MUTANT]({});
register("../../exclusion/planted/mutation.mjs", import.meta.url, { data });
