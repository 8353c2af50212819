/**
 * The tools of tests against real servers and real faults: servers, clusters, proxies, worker processes, and ways
 * to see what is on the server. `worker-child.mjs` is not here: the workers import it themselves.
 */

export * from "./certificates.js";
export * from "./cluster-failover.js";
export * from "./cluster-proxy.js";
export * from "./cluster-slots.js";
export * from "./command-counter.js";
export * from "./fault-proxy.js";
export { freePort, releasePort } from "./free-port.js";
export * from "./key-state.js";
export * from "./lasting.js";
export * from "./movable-clock.js";
export * from "./node-redis.js";
export * from "./orders.js";
export * from "./outcome.js";
export * from "./own-connections.js";
export * from "./patience.js";
export { anyCommand, type Fault, type Matcher, named } from "./proxy-faults.js";
export { findRedis, hasFeaturesOf, isAtLeast, noTlsOf } from "./redis-binary.js";
export { type Endpoint, redisCall } from "./redis-call.js";
export * from "./redis-cluster.js";
export * from "./redis-sentinel.js";
export * from "./redis-server.js";
export type { RespValue } from "./resp.js";
export { hasShardedPubSub, isSharded, needSharded } from "./sharded.js";
export type { ClientOptions } from "./tracked-clients.js";
export * from "./until.js";
export * from "./worker.js";
