/** How many cases are tried; `npm run fuzz` tries more, and the seed of a failed run repeats it. */
export const RUNS: number = Number(process.env.HOLDFAST_FUZZ_RUNS ?? 10_000);
export const SEED: number = Number(process.env.HOLDFAST_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** The command that repeats a failed run. */
export const AGAIN: string = `HOLDFAST_FUZZ_SEED=${SEED} HOLDFAST_FUZZ_RUNS=${RUNS} npx vitest run test/faults/fuzz`;
