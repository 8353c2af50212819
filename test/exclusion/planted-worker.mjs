/** A process that takes one kind of lock, right or wrong, and keeps the journal of the exclusion tests. */
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

  /** Resolves with the name of the stay, or null if the lock stayed with others. */
  async take({ lock, wait, lease, side, within }) {
    const askedAt = now();
    call = new AbortController();
    const { signal } = call;
    const hold = await adapter.take(lock, wait, lease, { side, signal, within: stays.get(within)?.hold });
    return hold && (await stay({ lock, lease, side, askedAt }, hold));
  },

  /** The last call ends without a hold, unless it has one. */
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

  /** Leaves by what the hold says of itself, and gives it back; what the unlock throws is not in question here. */
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
