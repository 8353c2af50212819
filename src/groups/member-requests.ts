/** The members of a group in one call: the owner that is to hold each member, and the calls for them. */

import { type LockRequest, type OwnedRequest, ownerOf } from "../locks/acquisition-options.js";
import { endRun } from "../locks/commands.js";
import { wireIdOf } from "../locks/loss.js";
import { type Grant, knownLockOf, OwnerLock, ownerLockOf } from "../locks/owner-lock.js";
import { release } from "../locks/release.js";
import { admitsUpgrade } from "../locks/upgrade.js";
import { ActedFor, type Frame, type OwnerRecord, openFrame } from "../owners/context.js";
import { MemberAcquisition } from "./member-acquisition.js";
import type { Member, Members } from "./members.js";

export interface MemberRequest {
  readonly member: Member;
  /** Undefined for a new owner, which is made when it is asked for. */
  readonly owner: OwnerRecord | undefined;
  /** The member's record without an owner. An owner's record is looked up for each call. */
  readonly own: OwnerLock | undefined;
  /** For a `run`: a run of the group is a run of each member, nested in the order of the members. */
  readonly frame: Frame | undefined;
  /** The number in the wire id of its first call's first try. */
  readonly number: number;
  /** No call has been made for it. */
  isNew: boolean;
}

/** The owner that is to hold a member: inside a run of that very lock the run's owner, else the owner of the call. */
function holderOf(member: Member, named: OwnerRecord | undefined, owner: OwnerRecord): OwnerRecord {
  return ownerOf(named, member.key) ?? owner;
}

/**
 * Whether the owner of this call can be made later, when it is asked for: the call is of a new owner, and no two members
 * share a record of it.
 */
export function isUnowned({ order, areApart }: Members, { owner, named }: LockRequest): boolean {
  return !owner && areApart && order.every(({ key }) => !ownerOf(named, key));
}

/** Opens the frames of a run of the group; returns the innermost, the group's own. */
export function openFrames(members: Members, request: OwnedRequest, outer: Frame | undefined): Frame {
  let frame = outer;
  for (const member of members.order)
    frame = openFrame(holderOf(member, request.named, request.owner), member.key, frame);
  return openFrame(request.owner, members.key, frame);
}

/** The frame of each member in a run whose innermost frame is `frame`, in the order of the members. */
function framesOf(members: Members, frame: Frame): readonly Frame[] {
  const frames: Frame[] = [];
  for (let each = frame.parent; frames.length < members.order.length && each; each = each.parent) {
    frames.unshift(each);
  }
  return frames;
}

/** The run whose innermost frame is `frame` is over: so is that of each member. */
export function endRuns(members: Members, frame: Frame): void {
  const frames = framesOf(members, frame);
  for (const [i, { key }] of members.order.entries()) {
    const own = frames[i];
    if (own) endRun(knownLockOf(own.owner, key), own);
  }
}

/** One request for each member, in `members.order`. Without an owner the request {@link isUnowned}. */
export function requestsOf(members: Members, request: LockRequest): readonly MemberRequest[] {
  const { named, owner } = request;
  if (!owner) return members.order.map(unownedRequest);
  const frames = request.frame ? framesOf(members, request.frame) : [];
  return members.order.map((member, i) => ({
    member,
    owner: holderOf(member, named, owner),
    own: undefined,
    frame: frames[i],
    number: member.env.mint(),
    isNew: true,
  }));
}

function unownedRequest(member: Member): MemberRequest {
  const { table, backend, env } = member;
  const own = new OwnerLock(table, undefined, backend.key);
  return { member, owner: undefined, own, frame: undefined, number: env.mint(), isNew: true };
}

/** The owner id that events tell while the call has no hold: the first member's, as in the first try there. */
export function ownerIdOf(requests: readonly MemberRequest[], { all: [first] }: Members): string {
  const { member, owner, own, number } = requests.find((each) => each.member === first) as MemberRequest;
  return wireIdOf(own ?? knownLockOf(owner, member.key)) ?? member.env.wireId(number);
}

/** Tells that a call has ended without a hold. `error`: what the call rejects with, if it does. */
export function tellEnd(
  members: Members,
  requests: readonly MemberRequest[],
  request: LockRequest,
  error?: unknown,
): void {
  const waited = members.clock.mono() - request.begun;
  members.tellEnd(ownerIdOf(requests, members), request, waited, error);
}

/** The owner of the hold on the group: the call's owner, through the owners of the members where these are others. */
export function actingOwner(
  owner: OwnerRecord | undefined,
  requests: readonly MemberRequest[],
): OwnerRecord | undefined {
  if (!owner || requests.every((request) => request.owner === owner)) return owner;
  const actors = requests.map((request) => [request.member.key, request.owner as OwnerRecord] as const);
  return new ActedFor(owner, new Map(actors));
}

/** Whether the owner holds this member already. */
export function isHeldByOwner({ member, owner, own }: MemberRequest): boolean {
  return wireIdOf(own ?? knownLockOf(owner, member.key)) !== undefined;
}

/**
 * To be called before a call waits for any member: the member that refuses it may be the last that it would try.
 * @throws UPGRADE_REFUSED if the owner only reads what the call wants to write
 */
export function assertNoUpgrade(requests: readonly MemberRequest[], { caller }: LockRequest): void {
  for (const { member, owner } of requests) {
    const own = knownLockOf(owner, member.key);
    if (own && member.backend.side === "write")
      admitsUpgrade({ backend: member.backend, caller, own }, false);
  }
}

/** The member to wait for: with both sides of one lock as members the write side, since a reader is refused the write side. */
export function standIn(requests: readonly MemberRequest[], refused: MemberRequest): MemberRequest {
  return requests.find(({ member }) => member.key === refused.member.key) as MemberRequest;
}

export interface Terms {
  /** Milliseconds; if absent the watchdog renews. */
  readonly lease: number | undefined;
  /** Called once, if the call has to wait. */
  readonly onWaiting?: () => void;
}

/** Makes a call for one member. */
export function callFor(
  request: MemberRequest,
  { caller }: LockRequest,
  { lease, onWaiting }: Terms,
): MemberAcquisition {
  const { member, owner, frame, number, isNew } = request;
  const { table, backend } = member;
  const own = request.own ?? ownerLockOf(table, owner, backend.key);
  const call = new MemberAcquisition({ own, backend, origin: "member", lease, frame, caller, onWaiting });
  // Events may have told it already. What a later call gets is another hold.
  if (isNew) call.number = number;
  request.isNew = false;
  return call;
}

/** Gives back a call's grant of a member; resolves as `unlock` would. */
export function giveBack({ member, owner, frame }: MemberRequest, grant: Grant): Promise<void> {
  const released = release(grant);
  endRun(knownLockOf(owner, member.key), frame);
  return released;
}
