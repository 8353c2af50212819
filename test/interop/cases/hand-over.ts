/** One hand-over from a party to another one, which waits meanwhile. */
import { expect } from "vitest";
import type { Party } from "../party.js";
import { type Scene, soon } from "../scene.js";
import type { Contest } from "./contests.js";

/** What `one` takes is seen by `other`, kept from it, and given to it by the message of its end; `meanwhile` it waits. */
export async function handOver(
  scene: Scene,
  contest: Contest,
  [one, other]: readonly [Party, Party],
  name: string,
  meanwhile: () => Promise<void> = async () => {},
): Promise<void> {
  const open = await contest.shut(one, name);
  expect(await contest.seen(other, name)).toEqual(contest.whenShut);
  expect(await contest.tries(other, name)).toBeNull();
  const waiting = await other.parked(() => contest.waits(other, name));
  await meanwhile();
  await open();
  const leave = await soon(waiting).catch((cause: unknown) => {
    throw new Error(`${other.side} waits for ${name} still`, { cause });
  });
  if (!contest.shared) expect(await contest.tries(one, name)).toBeNull();
  await leave();
  for (const party of [one, other]) expect(await contest.seen(party, name)).toEqual(contest.whenOpen);
  if (Array.isArray(contest.whenOpen) && contest.kind !== "permits") await scene.expectNothingLeft(name);
}
