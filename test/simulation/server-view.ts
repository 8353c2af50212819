/** What a server has, read past all clients. */
import { NAME } from "./process.js";
import type { Simulation } from "./simulation.js";
import { EPOCH } from "./world.js";

/** Of the permits that are out. */
export const LEASES: string = `{${NAME}}:timeout`;

export function isNumber({ schedule }: Simulation): boolean {
  return schedule.kind === "semaphore" || schedule.kind === "permits";
}

/** Those whose leases have ended are counted by the next one who looks. */
export function permitsFree({ servers, world }: Simulation): number {
  const [{ keys } = {}] = servers;
  const ended = [...(keys?.get(LEASES, "zset") ?? [])].filter(([, at]) => at <= EPOCH + world.now);
  return Number(keys?.get(NAME, "string") ?? 0) + ended.length;
}

export function isLocked({ servers }: Simulation, lock: string): boolean {
  return servers.some(({ keys }) => keys.typeOf(lock) !== undefined);
}
