/** The holds that one owner has of one group of locks. */
import { isLockError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { LockRecord, OwnerRecord } from "../owners/context.js";

/** A hold of a group, as its owner's record needs it. */
export interface OwnedGroup {
  readonly isHeld: boolean;
  /** The hold was taken by `lock()` or `tryLock()`, not by `run()`. */
  readonly isBare: boolean;
  readonly grants: readonly { readonly outcome: Promise<void> | undefined }[];
  takenBack: boolean;
  /** Called when a release begins. */
  onRelease: (() => void) | undefined;
  release(): Promise<void>;
}

export class GroupRecord implements LockRecord {
  readonly lockKey: string;
  readonly #owner: OwnerRecord;
  /** Holds that are not given back; the innermost is last. */
  readonly #grants: OwnedGroup[] = [];

  constructor(owner: OwnerRecord, lockKey: string) {
    this.#owner = owner;
    this.lockKey = lockKey;
  }

  static of(owner: OwnerRecord, lockKey: string): GroupRecord | undefined {
    return owner.get(lockKey, GroupRecord);
  }

  /** Puts a hold on the owner's stack; its release takes it off. */
  static push(owner: OwnerRecord, lockKey: string, grant: OwnedGroup): void {
    const record = GroupRecord.of(owner, lockKey) ?? new GroupRecord(owner, lockKey);
    record.#push(grant);
    grant.onRelease = () => record.#remove(grant);
  }

  /** The innermost hold that is still held. */
  get innermost(): OwnedGroup | undefined {
    return this.#last(({ isHeld }) => isHeld);
  }

  /** Gives back the innermost hold that `lock()` or `tryLock()` took. */
  release(): Promise<void> | undefined {
    const grant = this.#last(({ isBare }) => isBare);
    if (!grant) return undefined;
    grant.takenBack = true;
    return grant.release().catch((error: unknown) => {
      if (isLockError(error, "UNAVAILABLE")) this.#askAgain(grant);
      throw error;
    });
  }

  /** After UNAVAILABLE the release goes on; until it is done a further unlock() finds the hold again. */
  #askAgain(grant: OwnedGroup): void {
    this.#push(grant);
    const work = grant.grants.map(({ outcome }) => quietly(outcome ?? Promise.resolve()));
    void Promise.all(work).then(() => this.#remove(grant));
  }

  #last(is: (grant: OwnedGroup) => boolean): OwnedGroup | undefined {
    return this.#grants.filter(is).at(-1);
  }

  #push(grant: OwnedGroup): void {
    this.#grants.push(grant);
    this.#owner.put(this);
  }

  #remove(grant: OwnedGroup): void {
    const index = this.#grants.lastIndexOf(grant);
    if (index >= 0) this.#grants.splice(index, 1);
    if (this.#grants.length === 0) this.#owner.drop(this);
  }
}
