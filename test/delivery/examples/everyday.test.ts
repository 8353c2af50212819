/** Examples of everyday uses of locks. */
import { testExample, useExamples } from "./run.js";

useExamples();

testExample("order-stock.mjs", {
  says: /60 pieces were there, 60 were sold, none of them twice/,
  fault: {
    from: 'client.getLock("stock:42")',
    to: "client.getLock(String(process.pid))",
    noticed: /a piece was sold twice/,
  },
});

testExample("submit-throttle.mjs", {
  says: /a double click, on two processes: accepted once/,
  fault: {
    from: "client.getLock(nameOf(form))",
    to: "client.getLock(nameOf(form) + process.pid)",
    noticed: /a double click is accepted once/,
  },
});

testExample("scheduled-job.mjs", {
  says: /record: \[ 1, 1, 1 \], lease: \[ 1, 1, 1 \]/,
  fault: {
    from: 'if (Number(await redis.get("report:done")) >= tick) return;',
    to: "",
    noticed: /lock and record: once at each tick/,
  },
});

testExample("document.mjs", {
  says: /no reader saw half a version, and the writer was never kept out/,
  fault: {
    from: "lock.readLock().run(",
    to: "((fn) => fn())(",
    noticed: /a half-written document was read/,
  },
});

testExample("parking-lot.mjs", {
  says: /all 18 got in, never more than 3 places were taken/,
  fault: {
    from: "{ permits: places }",
    to: "{ permits: 1 }",
    noticed: /as many inside as there are places, and never more/,
  },
});
