// `npm run path` prints the way of one `lock()` and `unlock()` through `src`, to be read next to the code. Functions
// stand in the order in which they are entered. V8's coverage measures that, on a Redis server of its own.
//
//   npm run path               a lock that is free, taken and given back by a warm process
//   npm run path -- --waits    a second call of the process waits for it, too
import { parseArgs } from "node:util";
import { stepsOf, totalsOf } from "./path/walk.mjs";

const { values: asked } = parseArgs({ options: { waits: { type: "boolean" } } });
const steps = await stepsOf(asked.waits ? "waits" : "free");
console.log(page());

function page() {
  const where = ({ file, from, to }) => `${file}:${from}${to > from ? `-${to}` : ""}`;
  const indented = ({ depth, name }) => "  ".repeat(depth) + name;
  const width = (column) => Math.max(...steps.map((step) => column(step).length));
  const [places, names] = [width(where), width(indented)];
  const rows = steps.map(
    (step) =>
      `${indented(step).padEnd(names)}  ${where(step).padEnd(places)}  ${String(step.lines.length).padStart(3)}`,
  );
  const call = asked.waits
    ? "lock(), a second lock() that waits for it, and unlock() of both"
    : "lock() and unlock() of a free lock";
  const totals = totalsOf(steps);
  return [
    `${call}, warm: each function when it is first entered, under its caller; its place; how many of its lines run.`,
    "",
    ...rows,
    "",
    `${totals.files} files, ${totals.functions} functions, ${totals.lines} lines`,
  ].join("\n");
}
