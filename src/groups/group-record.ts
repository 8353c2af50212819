/** What an owner has of a group of locks: the holds that its `unlock()` gives back. */
import { isLockError } from "../base/errors.js";
import { quietly } from "../locks/work.js";
import type { LockRecord, OwnerRecord } from "../owners/context.js";
import type { GroupGrant } from "./group-grant.js";

export class GroupRecord implements LockRecord {
  readonly lockKey: string;
  readonly #owner: OwnerRecord;
  /** Taken by `lock()` or `tryLock()` and not given back; the innermost is last. */
  readonly #bare: GroupGrant[] = [];

  private constructor(owner: OwnerRecord, lockKey: string) {
    this.#owner = owner;
    this.lockKey = lockKey;
  }

  static of(owner: OwnerRecord, lockKey: string): GroupRecord | undefined {
    return owner.get(lockKey) as GroupRecord | undefined;
  }

  /** Puts a hold on the owner's stack, until it is given back. */
  static push(owner: OwnerRecord, lockKey: string, grant: GroupGrant): void {
    const record = GroupRecord.of(owner, lockKey) ?? new GroupRecord(owner, lockKey);
    record.#push(grant);
    grant.onRelease = () => record.#remove(grant);
  }

  /** Gives back the innermost hold. */
  release(): Promise<void> | undefined {
    const grant = this.#bare.at(-1);
    if (!grant) return undefined;
    grant.takenBack = true;
    return grant.release().catch((error: unknown) => {
      if (isLockError(error, "UNAVAILABLE")) this.#askAgain(grant);
      throw error;
    });
  }

  /** The work goes on; until it is done a further unlock asks for it again. */
  #askAgain(grant: GroupGrant): void {
    this.#push(grant);
    const work = grant.grants.map(({ outcome }) => quietly(outcome ?? Promise.resolve()));
    void Promise.all(work).then(() => this.#remove(grant));
  }

  #push(grant: GroupGrant): void {
    this.#bare.push(grant);
    this.#owner.put(this);
  }

  #remove(grant: GroupGrant): void {
    const index = this.#bare.lastIndexOf(grant);
    if (index >= 0) this.#bare.splice(index, 1);
    if (this.#bare.length === 0) this.#owner.drop(this);
  }
}
