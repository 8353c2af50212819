/** Milliseconds of a clock that all processes of one machine share, and that nobody sets: Date.now() could jump. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}
