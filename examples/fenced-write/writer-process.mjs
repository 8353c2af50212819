// The process of one writer. All that matters is in prepare(): the three ways to write.
import { once } from "node:events";
import { isLockError, LockClient } from "holdfast";

const [name, port] = process.argv.slice(2);
const text = `${name}'s text`;
// Short, so that the lease of a paused process is soon over. The default is 30 s.
const client = LockClient.connect({ host: "127.0.0.1", port: Number(port) }, { watchdogTimeout: 1_000 });

const WAYS = {
  async alone() {
    const hold = await client.getLock("document").lock();
    // The check is good, and worth nothing a moment later: whoever is paused here writes late.
    hold.assertHeld();
    return { hold, sql: "UPDATE document SET text = ? WHERE id = 'alone'", parameters: [text] };
  },

  async fenced() {
    const hold = await client.getFencedLock("document").lock();
    hold.assertHeld();
    // One write for each token; with `<=` a holder could write more than once. The token is text here, since SQLite
    // through JavaScript has no 64-bit integers.
    const sql =
      "UPDATE document SET text = ?, fence = CAST(?2 AS INTEGER) WHERE id = 'fenced' AND fence < CAST(?2 AS INTEGER)";
    return { hold, sql, parameters: [text, String(hold.token)] };
  },

  async versioned({ version }) {
    const sql = "UPDATE document SET text = ?, version = version + 1 WHERE id = 'versioned' AND version = ?";
    return { sql, parameters: [text, version] };
  },
};

for (;;) {
  const [{ way, row }] = await once(process, "message");
  const { hold, sql, parameters } = await WAYS[way](row);
  process.send("ready");
  await once(process, "message");
  process.send({ sql, parameters });
  await once(process, "message");
  // Too late for a paused holder, as it should be told.
  const lost = await hold
    ?.unlock()
    .catch((error) => isLockError(error, "LOCK_LOST") || Promise.reject(error));
  process.send(lost ? "lost" : "given back");
}
