/** A process that takes one kind of lock, right or wrong, and keeps the journal of the exclusion test. */
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { Journal, now } from "./journal.mjs";

const stays = new Map();
let adapter;
let journal;

serve({
  async connect({ kind, lockPort, witnessPort, name, watchdogTimeout }) {
    const { connect } = await import(`./planted/${kind}.mjs`);
    adapter = connect(new Redis(lockPort), { watchdogTimeout });
    journal = new Journal(new Redis(witnessPort), name);
  },

  /** Resolves with the name of the stay, or null if the lock stayed with others. */
  async take({ lock, wait, lease }) {
    const askedAt = now();
    const hold = await adapter.take(lock, wait, lease);
    if (!hold) return null;
    const section = await journal.enter(lock, askedAt, lease, hold.remaining);
    stays.set(section.id, { hold, section });
    return section.id;
  },

  /** Leaves by what the hold says of itself, and gives it back; what the unlock throws is not in question here. */
  async give(id) {
    const { hold, section } = stays.get(id);
    await journal.leave(section, hold.isHeld, hold.remaining > 0);
    await hold.unlock().catch(() => {});
  },
});
