/** holdfast: distributed locks on Redis. */

export type { HoldContext, LockCallContext } from "./base/channels.js";
export {
  ClientClosedError,
  isLockError,
  LockError,
  type LockErrorCode,
  LockLostError,
  LockNotOwnerError,
  LockTimeoutError,
  LockUpgradeError,
  type LossReason,
  QuorumError,
  RedisUnavailableError,
  ReplicationError,
  UnsupportedServerError,
  WrongDataError,
} from "./base/errors.js";
export type { LockEvent, LockEventName, LockEvents, LockKind, LockListener } from "./base/events.js";
export type { DurationHistogram, LockClientStats } from "./base/figures.js";
export { LockClient } from "./client.js";
export type { CloseOptions, LockClientOptions } from "./client-options.js";
export { MultiHold } from "./groups/group-grant.js";
export { MultiLock } from "./groups/multi-lock.js";
export { RedLock } from "./groups/red-lock.js";
export type { InspectOptions, ListOptions } from "./inspection/inspector.js";
export type { HolderInfo, LockInfo, WaiterInfo } from "./inspection/lock-info.js";
export type { LockFace } from "./lock/face.js";
export { FencedHold, Hold } from "./lock/hold.js";
export { FairLock, FencedLock, Lock, ReadWriteLock, type ReadWriteLockOptions } from "./lock/lock.js";
export type { LockOptions, OwnerOptions, TryLockOptions } from "./lock/options.js";
export { Owner } from "./owner/owner.js";
export type { ClientInfo } from "./presence/told.js";
export type { RedisConnection } from "./redis/connection.js";
export { CountDownLatch } from "./semaphores/count-down-latch.js";
export {
  PermitExpirableSemaphore,
  type PermitOptions,
  type PermitRunOptions,
} from "./semaphores/permit-expirable-semaphore.js";
export { Semaphore, type SemaphoreRunOptions, type SignalOptions } from "./semaphores/semaphore.js";
