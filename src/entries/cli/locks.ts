/** What several commands ask of locks, and how they show it. */
import type { ClientInfo, HolderInfo, LockClient, LockInfo, WaiterInfo } from "../../index.js";
import { numbersOf } from "../inspector/shown.js";
import type { Task } from "./command.js";
import { Facts } from "./doctor/facts.js";
import { spell, type Terminal } from "./terminal.js";

/** All locks, semaphores and latches under a pattern, by name. */
export async function allLocks(client: LockClient, match: string | undefined): Promise<LockInfo[]> {
  const found: LockInfo[] = [];
  for await (const info of client.list({ match: match ?? "*", kinds: "all" })) found.push(info);
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Tells who has asked one node of a cluster that the others are not seen. */
export async function tellOfPart({ connect, terminal }: Task): Promise<void> {
  const { server } = connect();
  if (server.isCluster) return;
  const mode = await new Facts(server).info("cluster_enabled").catch(() => undefined);
  if (mode === "1") terminal.tell("this is one node of a cluster, so you see only its part: use --cluster");
}

/** A process as people know it; a process of Java has only an id. */
export function nameOf(client: ClientInfo | null | undefined, ownerId?: string): string {
  return client?.label ?? ownerId ?? "?";
}

export function placeOf(client: ClientInfo | null | undefined): readonly [host: string, pid: string] {
  return client ? [client.host, String(client.pid)] : ["", ""];
}

/** How long it is since then, by the clock of this machine. */
export function ago(since: Date | null, now: number): string {
  return since ? spell(now - since.getTime()) : "";
}

export function holderText({ client, ownerId, count, since, ttl }: HolderInfo, now: number): string {
  const who = client ? `${client.label} (${client.host}, pid ${client.pid})` : "an unknown process";
  const long = since ? `, for ${ago(since, now)}` : "";
  const nested = count > 1 ? `, ${count} holds` : "";
  return `${who}${long}${nested}, lapses in ${spell(ttl)}   ${ownerId}`;
}

export function waiterText({ client, ownerId, since, holds }: WaiterInfo, now: number): string {
  const who = client ? `${client.label} (${client.host}, pid ${client.pid})` : nameOf(client, ownerId);
  const meanwhile = holds.length > 0 ? `, holds ${holds.join(", ")}` : "";
  return `${who}${since ? `, for ${ago(since, now)}` : ""}${meanwhile}`;
}

/** Shows a lock: its holders (●), and its waiters (○). */
export function show(terminal: Terminal, info: LockInfo, now: number): void {
  const { name, kind, mode, holders, waiting, waiters, ttl } = info;
  const what = [kind, mode && `mode ${mode}`, numbersOf(info)].filter(Boolean).join(", ");
  const end = ttl >= 0 ? `, lapses in ${spell(ttl)}` : "";
  terminal.say(`${name}   ${what}${end}`, "bold");
  for (const holder of holders) terminal.say(`  ● ${holderText(holder, now)}`);
  const told = new Set(waiting.map(({ ownerId }) => ownerId));
  for (const waiter of waiting) terminal.say(`  ○ ${waiterText(waiter, now)}`);
  for (const id of waiters) if (!told.has(id)) terminal.say(`  ○ an unknown process   ${id}`);
}
