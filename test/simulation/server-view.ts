/** The state of a server, read past all clients. */
import { NAME } from "./process.js";
import type { Simulation } from "./simulation.js";
import { EPOCH } from "./world.js";

/** The key of the leases of permits in use. */
export const LEASES: string = `{${NAME}}:timeout`;

export function isNumber({ schedule }: Simulation): boolean {
  return schedule.kind === "semaphore" || schedule.kind === "permits";
}

/** The number of free permits, with those whose leases have ended: the next call frees these. */
export function permitsFree({ servers, world }: Simulation): number {
  const [{ keys } = {}] = servers;
  const ended = [...(keys?.get(LEASES, "zset") ?? [])].filter(([, at]) => at <= EPOCH + world.now);
  return Number(keys?.get(NAME, "string") ?? 0) + ended.length;
}

export function isLocked({ servers }: Simulation, lock: string): boolean {
  return servers.some(({ keys }) => keys.typeOf(lock) !== undefined);
}
