/** The members of a group in one call: for whom each is held, and the claims on them. */
import { type OwnedAsk, ownerOf } from "../locks/call-options.js";
import { Claim } from "../locks/claim.js";
import type { Grant } from "../locks/grant.js";
import { stakeOf, tenureOf, wireIdOf } from "../locks/stakes.js";
import { type Frame, openFrame, type Party } from "../owners/context.js";
import type { Member, Roster } from "./roster.js";

export interface Seat {
  readonly member: Member;
  readonly owner: Party;
  /** Of a `run`: a run of the group is one of each member, one inside the other. */
  readonly frame: Frame | undefined;
}

/** Who holds a member in this call: inside a run of that very lock the run's owner, else the owner of the call. */
function holderOf(member: Member, ask: OwnedAsk): Party {
  return ownerOf(ask.named, member.key) ?? ask.owner;
}

/** The frames of a run of the group, the innermost last. */
export function openFrames(roster: Roster, ask: OwnedAsk, outer: Frame | undefined): Frame {
  let frame = outer;
  for (const member of roster.order) frame = openFrame(holderOf(member, ask), member.key, frame);
  return openFrame(ask.owner, roster.key, frame);
}

/** The frame of each member in a run whose innermost frame is `frame`, in the order of the roster. */
export function framesOf(roster: Roster, frame: Frame): readonly Frame[] {
  const frames: Frame[] = [];
  for (let each = frame.parent; frames.length < roster.order.length && each; each = each.parent) {
    frames.unshift(each);
  }
  return frames;
}

/** In the order of the roster. */
export function seatsOf(roster: Roster, ask: OwnedAsk): readonly Seat[] {
  const frames = ask.frame ? framesOf(roster, ask.frame) : [];
  return roster.order.map((member, i) => ({ member, owner: holderOf(member, ask), frame: frames[i] }));
}

/** Who holds the group: one party if all seats are its own, else one that acts through theirs. */
export function partyOf(owner: Party, seats: readonly Seat[]): Party {
  if (seats.every((seat) => seat.owner === owner)) return owner;
  return { stakes: owner.stakes, actors: new Map(seats.map((seat) => [seat.member.key, seat.owner])) };
}

/** Whether the owner holds this member already. */
export function isHeldByOwner({ member, owner }: Seat): boolean {
  return wireIdOf(owner, member.key) !== undefined;
}

export interface Terms {
  /** Milliseconds; if absent the watchdog renews. */
  readonly lease: number | undefined;
  /** Told once if it has to wait. */
  readonly onWaiting?: () => void;
}

/** A call for one seat. */
export function claimFor({ member, owner, frame }: Seat, ask: OwnedAsk, { lease, onWaiting }: Terms): Claim {
  const { env, primitive } = member;
  return new Claim({
    env,
    tenure: tenureOf(env, owner, primitive.key),
    primitive,
    origin: "member",
    lease: lease ?? env.settings.watchdogTimeout,
    renewed: lease === undefined,
    frame,
    caller: ask.caller,
    onWaiting,
  });
}

/** Gives back what a call got of a seat; resolves as `unlock` would. */
export function giveBack({ member, owner, frame }: Seat, grant: Grant): Promise<void> {
  const released = grant.release();
  stakeOf(owner, member.key)?.endRun(frame);
  return released;
}
