// These budgets limit how large the tests may be, and how long a file of them may take. Without limits they grow back,
// a good row at a time. A change that needs more raises its number here, or takes out what another row proves already.

/** The most lines (.ts and .mjs) of each folder of test/, which has no other folders. */
const LINES = {
  contract: 9_680,
  delivery: 3_790,
  entries: 7_990,
  faults: 3_130,
  fleet: 3_560,
  interop: 3_350,
  kinds: 5_340,
  lua: 3_290,
  simulation: 4_110,
  support: 4_080,
  topology: 1_390,
};

/** Seconds that a worker may spend on one file: 30 when it has a quiet machine to itself, many times that beside seven others. */
const SECONDS = 180;

/** Files and folders that may take longer: what they wait for or play is long by itself. */
const LONGER = {
  "test/delivery/": 600,
  "test/entries/testing-f": 400,
  "test/fleet/": 600,
  "test/interop/": 600,
  "test/simulation/": 600,
  "test/topology/": 600,
};

/** The most seconds of a file. */
export function secondsOf(file) {
  const [longest] = Object.entries(LONGER).filter(([place]) => file.startsWith(place));
  return longest ? longest[1] : SECONDS;
}

/** Of files below test/, each `{ file, lines }`, the folders that have more than they may, and those without a limit. */
export function overBudget(files, limits = LINES) {
  const sums = new Map();
  for (const { file, lines } of files) {
    const folder = file.split("/")[1];
    sums.set(folder, (sums.get(folder) ?? 0) + lines);
  }
  return [...sums]
    .filter(([folder, lines]) => !(lines <= limits[folder]))
    .map(
      ([folder, lines]) =>
        `test/${folder} has ${lines} lines; at most ${limits[folder] ?? 0} (tools/check/test-budgets.mjs)`,
    );
}
