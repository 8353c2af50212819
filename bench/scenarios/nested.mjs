// Nested takes of a lock that the same owner holds already. No peer re-enters. The floor is a script each that counts up and down
// a field of a hash.
import { cycles, measure, metrics, TTL, workerOf } from "../work/serial.mjs";

async function run(w, ms) {
  let result;
  await w.inst.inside("bench:nested", TTL, async (take, giveBack) => {
    result = await cycles(w, ms, take, giveBack);
  });
  return result;
}

export default {
  id: "nested",
  title: "nested take + give back",
  order: 2,
  floors: ["raw", "wire"],
  pin: "together",
  finer: 2,
  peers: ({ can = [] }) => can.includes("nest"),
  variants: [{ label: "inside a hold of the same owner" }],
  metrics,
  worker: workerOf(run),
  measure,
};
