/** What other clients hold and wait for, as far as Redis and their presence tell. */
import type { LockClient } from "../../index.js";
import { clientIdOf } from "./steal-notices.js";
import type { LockInfo, LockMode } from "./types.js";

const MODES: Readonly<Record<"read" | "write", LockMode>> = { read: "shared", write: "exclusive" };

export async function lookAtOthers(client: LockClient): Promise<{ held: LockInfo[]; pending: LockInfo[] }> {
  const held: LockInfo[] = [];
  const pending: LockInfo[] = [];
  for await (const { name, kind, mode, holders, waiting } of client.list()) {
    if (kind !== "readwrite" || mode === undefined) continue;
    for (const { ownerId } of holders) {
      const clientId = clientIdOf(ownerId);
      if (clientId !== client.id) held.push({ name, mode: MODES[mode], clientId });
    }
    for (const { client: its, mode: wanted } of waiting) {
      if (!its || its.id === client.id) continue;
      pending.push({ name, clientId: its.id, ...(wanted ? { mode: MODES[wanted] } : {}) });
    }
  }
  return { held, pending };
}
