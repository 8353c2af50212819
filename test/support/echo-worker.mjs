// A worker for the tests of worker.ts.
import { serve } from "./worker-child.mjs";

process.stderr.write("the worker is here\n");

serve({
  echo: async (payload) => payload,
  environment: async () => ({ args: process.argv.slice(2), value: process.env.FROM_TEST }),
  count: async (to, tell) => {
    for (let i = 1; i <= to; i++) tell("step", i);
    return to;
  },
  fail: async () => {
    throw Object.assign(new RangeError("out of range"), { code: "E_RANGE" });
  },
  uncloneable: async () => () => {},
});
