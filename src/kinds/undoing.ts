/** Undoes calls that ended without a hold: calls for one lock together, where the script of its kind can do that. */
import { tombstone } from "../base/names.js";
import { noop } from "../base/work.js";
import { type Backend, NOTHING_LEFT, type Rest } from "../locks/backend.js";
import type { Env } from "../locks/env.js";
import type { AnyCall } from "./calls.js";

/** What one undo ends: outermost calls, or one nested call. */
export interface Undoing {
  readonly wireIds: readonly string[];
  /** The keys of the tombstones that the undo writes, one for each call. */
  readonly overs: readonly string[];
  readonly rest: Rest;
}

/** Undoes an outermost call when the clean-up has room for it. `together`: in one command with others of its lock. */
export function undoSoon(
  backend: Backend & { readonly env: Env },
  wireId: string,
  together: boolean,
  callOf: (undoing: Undoing) => AnyCall,
): Promise<unknown> {
  const { key, kind, side } = backend;
  const { runner } = backend.env;
  const undo = (wireIds: readonly string[]) => {
    const overs = wireIds.map((each) => tombstone(key, each));
    const call = () => callOf({ wireIds, overs, rest: NOTHING_LEFT });
    return runner.callUntilAnswered(call, Number, noop);
  };
  return runner.cleanUp.add(wireId, { key, name: `${kind}/${side}/${key}`, together, undo });
}
