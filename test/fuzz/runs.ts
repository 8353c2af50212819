/** How much is tried; `npm run fuzz` asks for more, and a failed run is repeated by its seed. */
export const RUNS: number = Number(process.env.HOLDFAST_FUZZ_RUNS ?? 10_000);
export const SEED: number = Number(process.env.HOLDFAST_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** What a failure says, so that it can be had again. */
export const AGAIN: string = `HOLDFAST_FUZZ_SEED=${SEED} HOLDFAST_FUZZ_RUNS=${RUNS} npx vitest run test/fuzz`;
