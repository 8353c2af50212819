/** The calls of one owner on one lock that are under way, in the order they were made. */
import { List } from "../base/list.js";
import type { Claim } from "./claim.js";
import type { Side } from "./primitive.js";

export class Claims extends List<Claim> {
  /** Whether a `lock()` or `tryLock()` on this side is among them. */
  wants(side: Side): boolean {
    return this.all().some(({ origin, primitive }) => origin === "bare" && primitive.side === side);
  }

  /**
   * Holds or turns have changed: lets those look again whom that may concern. Of runs that wait for a turn it is the
   * first one, and those that share the turn with it: if all looked at each change, n of them would look n² times.
   */
  resume(): void {
    let next: Claim | undefined;
    for (const claim of this.all()) {
      if (!claim.frame || !claim.waitsForTurn) claim.resume();
      else if (next && !(isShared(next) && isShared(claim))) continue;
      else if (claim.mayHaveTurn()) {
        next ??= claim;
        claim.resume();
      }
    }
  }
}

function isShared({ primitive }: Claim): boolean {
  return primitive.sharing === "shared";
}
