/**
 * Turns journals into operations, so the search can say whether one order of all calls explains every grant. A call
 * without a grant is left out: an unreported grant could only keep others out, and explains none of theirs.
 */
import { type Entry, groupByLock, type Journals, kindOf, MS } from "./history.js";
import {
  type LockAnswer,
  type LockCall,
  mutex,
  readWriteLock,
  type SemaphoreAnswer,
  type SemaphoreCall,
  semaphore,
} from "./specs.js";
import { checkLinearizable, type History, type Operation, type Verdict } from "./wing-gong.js";

type AnyOperation = Operation<LockCall | SemaphoreCall, LockAnswer | SemaphoreAnswer>;

const OPEN = Number.POSITIVE_INFINITY;
/** A majority of masters is no single lock, and what is taken by force is found by its tokens. */
const LEFT_OUT = ["red", "forced"];
/** The most states of a name that are searched; nearly all names need hardly more than they have operations. */
const MOST = 20_000;

/** A verdict for each name. */
export function searchAll({ entries }: Pick<Journals, "entries">, permits: number): Map<string, Verdict> {
  const named = entries.flatMap((entry) => entry.names.map((lock) => ({ lock, entry })));
  const judged = [...groupByLock(named)].filter(([name]) => !LEFT_OUT.includes(kindOf(name)));
  return new Map(
    judged.map(([name, all]) => {
      const releases = new Map(
        all.flatMap(({ entry }) => (entry.call === "release" ? [[entry.of, entry]] : [])),
      );
      const grants = all.filter(({ entry }) => entry.answer.granted || entry.answer.because === "upgrade");
      return [
        name,
        search(
          name,
          grants.flatMap(({ entry }) => operationsOf(name, entry, releases.get(entry.id))),
          permits,
        ),
      ];
    }),
  );
}

function search(name: string, history: readonly AnyOperation[], permits: number): Verdict {
  const kind = kindOf(name);
  if (kind === "semaphore" || kind === "permits")
    return checkLinearizable(history as History<SemaphoreCall, SemaphoreAnswer>, semaphore(permits), MOST);
  const spec = kind === "readwrite" || kind === "unranked" ? readWriteLock : mutex;
  return checkLinearizable(history as History<LockCall, LockAnswer>, spec, MOST);
}

/** A call, and how what it was granted ended: by its release, or at any time after its lease. */
function operationsOf(name: string, entry: Entry, release: Entry | undefined): AnyOperation[] {
  const { id, at, answeredAt = OPEN, answer, by = id, side = "write" } = entry;
  const caller = answer.owner ?? by;
  const { permits, lease = OPEN, until = at + lease * MS } = answer;
  const what = permits === undefined ? { side } : { permits };
  const told = (
    call: "acquire" | "release",
    { at: invoked, answeredAt: settled = OPEN }: Entry,
    said: LockAnswer,
  ) => {
    const outcome = { kind: "ok", answer: said } as const;
    return { name, caller, call: { do: call, ...what }, invoked, settled, outcome };
  };
  const open = (call: "expire" | "release", invoked: number): AnyOperation => {
    const outcome = { kind: "unknown" } as const;
    return { name, caller, call: { do: call, ...what } as LockCall, invoked, settled: OPEN, outcome };
  };
  if (!answer.granted) return [told("acquire", entry, { granted: false, because: "upgrade" })];
  const token = answer.token === undefined ? {} : { token: BigInt(answer.token) };
  const taken = told("acquire", { ...entry, answeredAt }, { granted: true, ...token });
  const done = release?.answer.done;
  // Permits come back once: by their release, or before that by the end of their lease.
  if (release && permits !== undefined)
    return [
      taken,
      done ? told("release", release, { released: true }) : open("release", Math.min(release.at, until)),
    ];
  if (permits !== undefined) return [taken, ...(until < OPEN ? [open("release", until)] : [])];
  if (!release) return [taken, open("expire", until)];
  const end = open("expire", release.held ? release.at : until);
  if (done === undefined) return [taken, open("release", release.at), end];
  if (!done) return [taken, told("release", release, { released: false, because: "lost" }), end];
  return [taken, told("release", release, { released: true }), ...(release.held ? [] : [end])];
}
