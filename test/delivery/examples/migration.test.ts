/** Examples for readers who come from another library. */
import { testExample, useExamples } from "./run.js";

useExamples();

testExample("from-redlock.mjs", {
  says: /bridge and new side by side: no sale lost/,
  fault: {
    from: "=> old(() => client.getLock",
    to: "=> ((run) => run())(() => client.getLock",
    noticed: /a sale was lost/,
  },
});

testExample("from-redisson.mjs", {
  says: /Java gives back, and Node has it after \d+ ms/,
  fault: { from: 'client.getLock("stock")', to: 'client.getLock("stack")', noticed: /what Redisson writes/ },
});

testExample("from-redis-semaphore.mjs", {
  says: /semaphores side by side: at most \d of 5, and later \d/,
  fault: { from: "LIMIT - OLD_SHARE", to: "LIMIT", noticed: /more than the limit/ },
});
