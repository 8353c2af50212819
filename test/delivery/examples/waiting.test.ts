/** Examples of waiting, of giving up, and of holds and their ends. */
import { testExample, useExamples } from "./run.js";

useExamples();

testExample("ticket-window.mjs", {
  says: /cem has left; served within \d+ ms: ada, ben, dot, eva, fay, gus/,
  fault: { from: "client.getFairLock(", to: "client.getLock(", noticed: /ada stands in the queue/ },
});

testExample("cancel-wait.mjs", {
  says: /nobody waits, nobody listens, nothing is locked/,
  fault: { from: "{ signal: browser.signal }", to: "{}", noticed: /the server's wait has ended/ },
});

testExample("lost-hold.mjs", {
  says: /Ada comes back and is told: lock "thesis" was lost/,
  fault: { from: "        hold.assertHeld();\n", to: "", noticed: /isHeld, assertHeld\(\) and signal/ },
});

testExample("await-using.ts", {
  says: /each block gave back what it took/,
  fault: { from: "await using client", to: "const client", noticed: /Missing expected rejection/ },
});

testExample("start-together.mjs", {
  says: /all have started, and were done \d+ ms later/,
  fault: { from: "  await gate.await();\n", to: "", noticed: /nobody starts before the last is ready/ },
});
