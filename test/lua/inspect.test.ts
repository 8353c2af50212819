import { counterInspect, lockInspect } from "../../src/scripts/generated.js";
import { held, LOCK, left, type Scores, type States, scored, text, useBench } from "./bench.js";
import { ENDLESS, LEASES, NUMBER, number } from "./counts.js";
import { each, scriptTable, WRONGTYPE } from "./table.js";

const QUEUE = "redisson_lock_queue:{job}";
const COUNTER = "redisson_lock_token:{job}";
const CLIENT = "6e3814a1-e847-452b-a982-45baf93a1df2";
const [ME, OTHER, DEAD] = [`${CLIENT}:1`, `${CLIENT}:2`, `${CLIENT}:-3`];
const bench = await useBench();
const keys = { lock: LOCK, queue: QUEUE, counter: COUNTER };
const readHold = (owner: string, i: number): string => `{job}:${owner}:rwlock_timeout:${i}`;

const waiting: States = { [QUEUE]: { value: [OTHER, "whoever", ME], ttl: -1 } };
const found = (...rest: unknown[]) => [left(30_000), ...rest];

scriptTable(bench, lockInspect, {
  keys,
  args: {},
  endless: /^redisson_lock_queue/,
  thrifty: true,
  rows: {
    "a lock: its TTL, its owner and count": {
      // The key of a read hold, which a plain lock does not have.
      given: { [LOCK]: held({ [ME]: "2" }, 30_000), [readHold(ME, 1)]: text("1", 9_000) },
      reply: found(0, "", [], [ME, "2", 0]),
    },
    "the read side: each reader with the longest time of its holds": {
      given: {
        [LOCK]: held({ mode: "read", [ME]: "2", [OTHER]: "1", [DEAD]: "1" }, 90_000),
        [readHold(ME, 1)]: text("1", 20_000),
        [readHold(ME, 2)]: text("1", 60_000),
        [readHold(OTHER, 1)]: text("1", 90_000),
      },
      reply: [left(90_000), 0, "read", [], [ME, "2", left(60_000), OTHER, "1", left(90_000), DEAD, "1", 0]],
    },
    ...each(
      "readers with countless holds: %s",
      {
        "ten thousand are looked for in vain": [90_000, { [ME]: "10002" }, readHold(ME, 10_002), [30_000]],
        "not one more; then the lock's time counts": [
          90_000,
          { [ME]: "10003" },
          readHold(ME, 10_003),
          [90_000],
        ],
      } as Record<string, [ttl: number, counts: Record<string, string>, last: string, times: number[]]>,
      ([ttl, counts, last, times]) => ({
        given: { [LOCK]: held({ mode: "read", ...counts }, ttl), [last]: text("1", 30_000) },
        reply: [
          left(ttl),
          0,
          "read",
          [],
          Object.entries(counts).flatMap(([owner, count], i) => [owner, count, left(times[i] ?? 0)]),
        ],
      }),
    ),
    "a field among many more readers than are looked at first is found [B117]": {
      given: {
        [LOCK]: held(
          {
            mode: "read",
            user: "1",
            ...Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`${ME}${i}`, "1"])),
          },
          30_000,
        ),
      },
      reply: WRONGTYPE,
    },
    "a queue alone": { given: waiting, reply: [-2, 0, "", [OTHER, "whoever", ME], []] },
  },
});

const WHOLE = { 0: "0", 5: "5", "-7": "-7", "of 18 digits": "123456789012345678" };

const counted = (n: number | string, out: Scores["members"] = {}): States => ({
  [NUMBER]: number(n),
  ...(Object.keys(out).length > 0 && { [LEASES]: scored(out) }),
});

scriptTable(bench, counterInspect, {
  keys: { number: NUMBER, leases: LEASES },
  args: {},
  endless: ENDLESS,
  thrifty: true,
  rows: {
    ...each("the number %s, by which nothing was taken under an id, is read exactly", WHOLE, (value) => ({
      given: counted(value),
      reply: [value, 0, 0],
    })),
    "permits that are out, and those whose leases have ended, which stay as they are": {
      given: counted(1, {
        gone: -60_000,
        "just now": 0,
        soon: 20_000,
        later: 60_000,
        never: { at: 2 ** 60 },
      }),
      reply: ["1", 2, 3],
    },
    "{}: there is no number": { reply: [] },
  },
});
