/** A process that takes locks of one kind, right or wrong, and writes the journal of the exclusion tests. */
import { Redis } from "ioredis";
import { emit, serve } from "../support/worker-child.mjs";
import { Journal, now } from "./journal.mjs";

const stays = new Map();
let adapter;
let journal;
let taken = 0;
let call = new AbortController();

serve({
  async connect({ planted, lockPort, witnessPort, name, options }) {
    const { connect } = await import(`./planted/${planted}.mjs`);
    adapter = await connect(new Redis(lockPort), options, (lock) => emit("waiting", lock));
    journal = new Journal(new Redis(witnessPort), name);
  },

  /** Resolves with the id of the stay, or null if the call did not get the lock. */
  async take({ lock, wait, lease, side, within }) {
    const askedAt = now();
    call = new AbortController();
    const { signal } = call;
    const hold = await adapter.take(lock, wait, lease, { side, signal, within: stays.get(within)?.hold });
    return hold && (await stay({ lock, lease, side, askedAt }, hold));
  },

  /** Aborts the last call; if that call has its hold already, nothing happens. */
  giveUp() {
    call.abort();
  },

  async nest({ stay: id, side, lease }) {
    const { hold, section, nested } = stays.get(id);
    nested.push(await adapter.take(section.lock, 1_000, lease, { side, within: hold }));
  },

  async unnest(id) {
    await stays.get(id).nested.pop().unlock();
  },

  async downgrade({ stay: id, lease }) {
    const { hold, section } = stays.get(id);
    const { lock } = section;
    const askedAt = now();
    await journal.leave(section, hold, hold.remaining > 0);
    const read = await adapter.take(lock, 0, lease, { side: "read", within: hold });
    const reading = await stay({ lock, lease, side: "read", askedAt }, read);
    await hold.unlock();
    return reading;
  },

  /** Leaves by the hold's own state, and gives it back; the errors of unlock() do not matter here. */
  async give(id) {
    const { hold, section } = stays.get(id);
    await journal.leave(section, hold, hold.remaining > 0);
    await hold.unlock().catch(() => {});
  },
});

async function stay({ lock, lease, side, askedAt }, hold) {
  const enteredAt = now();
  const section = await journal.enter({
    lock,
    owner: hold.ownerId ?? `${process.pid}-${++taken}`,
    shared: side === "read",
    askedAt,
    place: adapter.placeOf?.(hold, side),
    enteredAt,
    lease,
    remaining: hold.remaining,
    token: hold.token,
  });
  stays.set(section.id, { hold, section, nested: [] });
  return section.id;
}
