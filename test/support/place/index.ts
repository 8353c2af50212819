/** Where rows of the contract suite run, on what, and how they are written. */
export * from "../deferred.js";
export { ORDERS } from "../orders.js";
export { failure, type Watched, watch } from "../outcome.js";
export * from "./kinds.js";
export { type Place, STRANGER } from "./place.js";
export { type RowOptions, row } from "./row.js";
export { NAME, openVirtual, Party, type Ran, type VirtualPlace, VirtualServer } from "./virtual.js";
