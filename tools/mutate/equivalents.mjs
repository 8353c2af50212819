// Changes of the TypeScript that no test can notice, and why.

const ORDER = "those that are due together may come in any order";
const SHORTCUT = "spares work, and comes to the same";
const UNDEFINED = "undefined either way";
const BEGUN = "the engine sets it when the call begins";
const TRACED = "what NODE_DEBUG prints is no part of what is promised";
const LOST_BEFORE = "told once, behind the loss itself";
const THERE = "it is there by then";
const MEMORY = "what is kept for too long costs memory alone";
const NOBODY = "nobody has that name";
const TAKEN_OFF = "its outcome has settled, so it is off the list again before the caller knows";

/** The changes of one line that `edits` make, each by a text and what takes its place. */
function same(why, file, line, ...edits) {
  return edits.map(([from, to]) => [`src/${file}.ts: ${line} -> ${line.replace(from, () => to)}`, why]);
}

/** As `file: line -> line`. */
const EQUIVALENT = new Map([
  ...same(
    ORDER,
    "watchdog/timer-heap",
    "const below = right && left && right.dueAt < left.dueAt ? right : left;",
    ["<", "<="],
  ),
  ...same(ORDER, "watchdog/timer-heap", "if (!below || below.dueAt >= entry.dueAt) return;", [">=", ">"]),
  ...same("a batch is never empty", "watchdog/watchdog", "renewer?.renew(batch, late).then(", ["?", ""]),
  ...same("a batch is never empty", "watchdog/watchdog", "const renewer = first?.renewer;", ["?", ""]),
  ...same(SHORTCUT, "watchdog/timer-heap", "if (!isNew) this.#sink(entry);", ["!isNew", "true"]),
  ...same(BEGUN, "engine/acquisition", "single = false;", ["false", "true"]),
  ...same(BEGUN, "engine/acquisition", "hasWaited = false;", ["false", "true"]),
  ...same(UNDEFINED, "engine/acquisition", "get ticket(): string | undefined { return undefined; }", [
    /{.*/,
    "{}",
  ]),
  ...same(
    UNDEFINED,
    "engine/acquisition",
    "whenAnswered(_callback: () => void): (() => void) | undefined { return undefined; }",
    [/{.*/, "{}"],
  ),
  ...same(
    UNDEFINED,
    "engine/acquisition",
    "succeed(_lockKey: string, _own: number | undefined): Successor | undefined { return undefined; }",
    [/{.*/, "{}"],
  ),
  ...same(
    "without it there is no interval",
    "engine/round-backoff",
    "this.#servedAt !== undefined && this.#interval ? (now - this.#servedAt) / this.#interval : 1;",
    ["this.#servedAt !== undefined", "true"],
  ),
  ...same(SHORTCUT, "engine/promised-permits", "if (this.#last === waiter) this.#last = undefined;", [
    "this.#last === waiter",
    "true",
  ]),
  ...same(
    SHORTCUT,
    "engine/wait-queue",
    "for (const waiter of mustRetry.length > 0 ? this.#waiters.all() : []) {",
    ["mustRetry.length > 0", "true"],
    [">", ">="],
  ),
  ...same(
    SHORTCUT,
    "engine/engine",
    "if (hasTimeout || signal) this.#limit(call, hasTimeout ? wait : undefined, signal);",
    ["hasTimeout || signal", "true"],
  ),
  ...same(SHORTCUT, "engine/engine", "if (signal) this.#limit(call, undefined, signal);", [
    "(signal)",
    "(true)",
  ]),
  ...same(SHORTCUT, "engine/wait-loop", "if (call.queued) this.queues.join(call).leave(call, false);", [
    "call.queued",
    "true",
  ]),
  ...same(
    "who is resumed meanwhile does not sleep",
    "engine/wait-loop",
    "if (reenters) this.#sleep(call, ms);",
    ["reenters", "true"],
  ),
  ...same(
    "nothing goes round for nobody",
    "engine/wait-queue",
    "if (this.#waiters === call.list && (shared || remaining > 0)) {",
    ["shared || remaining > 0", "true"],
    [">", ">="],
  ),
  ...same(
    NOBODY,
    "engine/wait-queue",
    "refused(call: Acquisition<unknown>, ms: number, mustRetry: readonly string[] = [], others = 0): void {",
    ["= []", '= ["Stryker was here"]'],
  ),
  ...same(
    NOBODY,
    "engine/wait-queue",
    "for (const waiter of mustRetry.length > 0 ? this.#waiters.all() : []) {",
    [": []", ': ["Stryker was here"]'],
  ),
  ...same(
    NOBODY,
    "engine/wait-queue",
    "if (waiter.ticket !== undefined && mustRetry.includes(waiter.ticket)) waiter.hint();",
    ["waiter.ticket !== undefined", "true"],
  ),
  ...same(THERE, "engine/wait-queue", "this.first?.resume();", ["?.", "."]),
  ...same("0 has been dealt with before", "engine/wait-loop", "if (ttl < 0) return pollCap;", ["<", "<="]),
  ...same(TRACED, "locks/telling", "trace('lock \"%s\": %s waits', backend.lockName, ownerId);", [
    /'.*'/,
    '""',
  ]),
  ...same(TRACED, "locks/acquire", "trace('lock \"%s\": granted to %s', this.lockName, grant);", [
    /'.*'/,
    '""',
  ]),
  ...same(TRACED, "locks/loss", "trace('lock \"%s\": lost by %s, %s', grant.lockName, grant, reason);", [
    /'.*'/,
    '""',
  ]),
  ...same(TRACED, "locks/release", "trace('lock \"%s\": given back by %s', grant.lockName, grant);", [
    /'.*'/,
    '""',
  ]),
  ...same(TRACED, "locks/renewal", 'trace("a renewal got no answer");', [/".*"/, '""']),
  ...same(
    "an event that nobody hears is none",
    "locks/telling",
    'if (events.heard("waiting")) events.emit("waiting", { ...eventOf(backend), ownerId });',
    ['events.heard("waiting")', "true"],
  ),
  ...same("it counts the same", "locks/renewal", 'if (env.events.heard("renewed")) {', [
    'env.events.heard("renewed")',
    "true",
  ]),
  ...same(SHORTCUT, "locks/acquire", "if (!own.lastCommand && !own.firstHold) {", [
    "!own.lastCommand && !own.firstHold",
    "false",
  ]),
  ...same(
    SHORTCUT,
    "locks/acquire",
    "if (!own.lastCommand && !own.firstHold) { // Nobody else sends commands for a record without an owner. const outermost = () => this.#outermost(within, coWaiters); const tried = own.owner ? inOrder(own, outermost) : outermost(); this.lastTry = tried; return tried; }",
    [/{ \/.*}/, "{}"],
  ),
  ...same(THERE, "locks/acquire", "else if (this.awaitsTurn) this.own.turns?.settle(this);", ["?", ""]),
  ...same(
    THERE,
    "locks/acquire",
    'return this.own.table.env.router.subscribe(this.backend.wakesOn(this.wireId ?? ""), listener);',
    ['""', '"Stryker was here!"'],
  ),
  ...same(
    "its one call is told of nothing",
    "locks/acquire",
    "if (this.own.owner) openCall(this.own, this);",
    ["(this.own.owner)", "(true)"],
  ),
  ...same("what it refuses would be refused again, unless it is undone", "kinds/hash", "call.vital = true;", [
    "true",
    "false",
  ]),
  ...same(
    SHORTCUT,
    "locks/acquisition-options",
    "const owner = named ? actorOf(named, lockKey) : caller && ownerInside(caller, lockKey);",
    ["caller &&", "true &&"],
  ),
  ...same(SHORTCUT, "locks/bare-calls", "const own = noting > 0 ? ownHold(wanted) : undefined;", [
    "noting > 0",
    "true",
  ]),
  ...same(SHORTCUT, "locks/commands", "if (own.owner) forgetIfIdle(own);", ["(own.owner)", "(true)"]),
  ...same(SHORTCUT, "watchdog/watchdog", "if (dueAt < this.#armedFor) this.#arm();", [
    "dueAt < this.#armedFor",
    "true",
  ]),
  ...same(SHORTCUT, "locks/acquire", "if (own.owner) dropTurns(own);", ["(own.owner)", "(true)"]),
  ...same(MEMORY, "locks/acquire", "if (own.owner) dropTurns(own);", ["(own.owner)", "(false)"]),
  ...same(UNDEFINED, "locks/acquire", "if (successor) this.successor = undefined;", [
    "(successor)",
    "(true)",
  ]),
  ...same(
    "the hold's owner, made when it is asked for, is not undefined",
    "locks/bare-calls",
    "return own && (call.owner === undefined || own.owner !== call.owner) ? own : undefined;",
    ["call.owner === undefined", "false"],
  ),
  ...same(
    "what an owner holds is in use by its record, and so no garbage",
    "locks/bare-calls",
    "if (owner !== undefined || lease !== undefined) return;",
    ["owner !== undefined", "false"],
  ),
  ...same(
    "it waits for those that go first, and not for this",
    "locks/successor",
    "this.#resolve(granted ? { granted, token } : { granted, ttl: others > 0 ? -1 : 0, others });",
    ["-1", "+1"],
  ),
  ...same("a promise settles once", "locks/successor", "if (this.settled) return;", [
    "this.settled",
    "false",
  ]),
  ...same(
    "nobody waits for it any more",
    "locks/acquire",
    'if (!this.over) throw new LockLostError(this.lockName, "expired", this.own.table.env.clock.wall());',
    ["!this.over", "true"],
  ),
  ...same("asked for as neither live nor lost", "locks/hold-record", 'this.state = "ended";', ["ended", ""]),
  ...same(LOST_BEFORE, "locks/hold-record", "fate?.controller?.abort(fate.loss);", ["fate?", "fate"]),
  ...same(LOST_BEFORE, "locks/hold-record", "fate?.callback?.();", ["fate?", "fate"]),
  ...same(
    LOST_BEFORE,
    "locks/hold-record",
    "if (fate) fate.callback = undefined;",
    ["(fate)", "(true)"],
    ["(fate)", "(false)"],
  ),
  ...same(SHORTCUT, "locks/holds", "if (own.firstHold === without && !without?.next) return NOTHING_LEFT;", [
    "own.firstHold === without && !without?.next",
    "false",
  ]),
  ...same(
    SHORTCUT,
    "locks/loss",
    "if (live.length > 0) drop(own, live, reason);",
    ["live.length > 0", "true"],
    [">", ">="],
  ),
  ...same(THERE, "locks/loss", "return own && holds(own) ? own.firstHold?.wireId : undefined;", ["?.", "."]),
  ...same(THERE, "locks/renewal", "if (!own.firstHold?.next) own.renewAt = NEVER;", ["?.", "."]),
  ...same("what it throws then is dropped", "locks/loss", "if (!grant) return;", ["!grant", "false"]),
  ...same(
    "without troubles there are no suspects either way",
    "locks/loss",
    "if (own.troubles) own.troubles = { ...own.troubles, forced: otherSuspects(own, side) };",
    ["(own.troubles)", "(true)"],
  ),
  ...same(
    TAKEN_OFF,
    "locks/release",
    'if (!isAgain && isLockError(error, "UNAVAILABLE") && grant.outcome && isKnown(own, grant)) {',
    ['isLockError(error, "UNAVAILABLE") && grant.outcome && isKnown(own, grant)', "true"],
    ['isLockError(error, "UNAVAILABLE") && grant.outcome', "true"],
    ["grant.outcome &&", "grant.outcome ||"],
    ['"UNAVAILABLE") &&', '"UNAVAILABLE") ||'],
  ),
  ...same(
    TAKEN_OFF,
    "locks/holds",
    "for (let other = own.firstHold; other; other = other.next) if (other === grant) return true;",
    ["other === grant", "true"],
  ),
  ...same(
    "both end after the same time",
    "locks/release",
    "const isQueued = own.lastCommand !== undefined || own.unsure !== undefined;",
    [/= own.*;/, "= true;"],
  ),
  ...same(
    "both end after the same time",
    "locks/release",
    "if (isQueued) return env.runner.withTimeout(grant.lockName, grant.outcome);",
    ["(isQueued)", "(true)"],
  ),
  ...same(
    "says the same as none",
    "locks/renewal",
    "if (own.troubles) own.troubles = { ...own.troubles, suspended: false };",
    ["(own.troubles)", "(true)"],
  ),
  ...same(
    MEMORY,
    "locks/turns",
    "return this.#active.size === 0 && this.#waiting === 0 && !this.#next;",
    [/this.*#next/, "false"],
    ["!this.#next", "this.#next"],
  ),
  ...same(
    SHORTCUT,
    "locks/commands",
    "settled = queueCommand(own, own.lastCommand ? inTime(own, within, begin, expire) : () => begin(within));",
    ["own.lastCommand", "true"],
  ),
  ...same(
    "its failure is told to nobody",
    "locks/commands",
    'own.unsure.push((ms) => quietly(runner.withTimeout("", backend.undo(wireId, callId, rest), ms)));',
    ['""', '"Stryker was here!"'],
  ),
  ...same(
    "its failure is told to nobody",
    "locks/commands",
    'return quietly(own.table.env.runner.withTimeout("", work));',
    ['""', '"Stryker was here!"'],
  ),
  ...same(
    "nobody asks what is left where a whole wire id is undone",
    "locks/commands",
    "const undone = quietly(backend.undo(wireId, undefined, () => NOTHING_LEFT));",
    ["NOTHING_LEFT", "undefined"],
  ),
  ...same(
    MEMORY,
    "locks/commands",
    "function dropTurns(own: OwnerLock): void { if (own.turns?.idle) own.turns = undefined; forgetIfIdle(own); }",
    [/{.*}/, "{}"],
  ),
  ...same(MEMORY, "locks/commands", "if (own.turns?.idle) own.turns = undefined;", [
    "own.turns?.idle",
    "false",
  ]),
  ...same(
    MEMORY,
    "locks/owner-lock",
    "if (own.owner && !own.firstHold && !own.openHold && !own.calls && !own.turns) own.owner.drop(own);",
    [/own\.owner && .*own\.turns\)/, "false)"],
    ["!own.turns", "own.turns"],
  ),
  ...same(
    MEMORY,
    "locks/owner-lock",
    "export function forgetIfIdle(own: OwnerLock): void { if (own.owner && !own.firstHold && !own.openHold && !own.calls && !own.turns) own.owner.drop(own); }",
    [/{.*}/, "{}"],
  ),
  ...same(UNDEFINED, "locks/owner-lock", "if (token !== undefined) this.token = token;", [
    "token !== undefined",
    "true",
  ]),
  ...same(UNDEFINED, "locks/owner-lock", "if (frame) this.frame = frame;", ["(frame)", "(true)"]),
  ...same(
    "it sets what is there already",
    "locks/owner-lock",
    "if (this.#laterBy(sent, lease) > 0) this.setTerm(sent, lease);",
    [">", ">="],
  ),
  ...same(
    "it sets what is there already",
    "locks/owner-lock",
    "if (this.#laterBy(sent, lease) < 0) this.setTerm(sent, lease);",
    ["<", "<="],
  ),
  ...same("no queue has that name", "locks/handoff", "if (queueName === undefined) return;", [
    "queueName === undefined",
    "false",
  ]),
  ...same(
    "nobody hears what is told then",
    "locks/telling",
    "if (isHeard(holdChannel)) publish(env.clientId, about, record);",
    ["isHeard(holdChannel)", "true"],
  ),
  ...same(
    UNDEFINED,
    "locks/telling",
    "if (callSite && settings.traceHolds) grant.callSite = callSite;",
    ["callSite && settings.traceHolds", "true"],
    ["&&", "||"],
  ),
  ...same(
    "a hold that is over is not watched any more",
    "locks/long-holds",
    'if (record.isHeld) this.#events.emit("longHold", { lockName, kind, ownerId, held });',
    ["record.isHeld", "true"],
  ),
  ...same(
    "a hold that is over is told of nobody",
    "locks/long-holds",
    "record.whenEnded(() => this.#timeout.running.remove(watched));",
    ["this.#timeout.running.remove(watched)", "undefined"],
  ),
  ...same(SHORTCUT, "locks/env", "if (--this.#unsettled > 0 || this.#onSettled.length === 0) return;", [
    "this.#onSettled.length === 0",
    "false",
  ]),
  ...same(
    SHORTCUT,
    "locks/lock",
    "if (!runner.prepared) await runner.prepare(this.name, runner.commandTimeout).catch(tellCaller);",
    ["!runner.prepared", "true"],
  ),
  ...same("no owner has that name", "locks/lock", 'return (await this.#state("")).held;', [
    '""',
    '"Stryker was here!"',
  ]),
  ...same("no owner has that name", "locks/lock", 'return (await this.#state("")).ttl;', [
    '""',
    '"Stryker was here!"',
  ]),
  ...same("asked for as neither bare nor a member", "locks/lock", 'const origin = frame ? "run" : "bare";', [
    '"run"',
    '""',
  ]),
  ...same(
    "nothing of a run is noted, and it has an owner",
    "locks/lock-face",
    "if (request.isBare) this.#bareCalls.granted(request, hold, partsOfHold(hold));",
    ["request.isBare", "true"],
  ),
  ...same(
    "without the option nobody is told of it",
    "locks/lock-face",
    "if (this.#traces) request.callSite = new CallSite(called, TRACED_FRAMES);",
    ["this.#traces", "true"],
  ),
  ...same(
    SHORTCUT,
    "locks/live-set",
    "if (!this.#live.remove(item) || this.#live.first || this.#onIdle.length === 0) return;",
    ["this.#onIdle.length === 0", "false"],
  ),
  ...same(
    THERE,
    "locks/own-holds",
    "if (mark.lockKey === lockKey && isLive(mark)) return mark.held?.deref();",
    ["?.", "."],
  ),
  ...same(
    "only a read side asks for it, and the probe is none",
    "locks/ready-check",
    "await probe.acquire({ wireId, lease: LEASE, within, coWaiters: undefined, again: false });",
    ["again: false", "again: true"],
  ),
  ...same(
    "a version that it cannot read then is new enough",
    "locks/ready-check",
    "const version = /^redis_version:(\\d+)\\.(\\d+)/m.exec(String(info));",
    ["(\\d+)", "(\\d)"],
  ),
  ...same(
    "nobody listens to a name that is fresh",
    "locks/ready-check",
    'await runner.command(runner.publishCommand, channel, "0");',
    ['"0"', '""'],
  ),
  ...same(
    SHORTCUT,
    "locks/acquisition-options",
    "const { wait, lease, signal, named } = options === NO_OPTIONS ? UNLIMITED : checkLimits(options);",
    ["options === NO_OPTIONS", "false"],
  ),
  ...same("one without an owner has nobody to be told", "locks/commands", "if (own.owner) tellOwner(own);", [
    "own.owner",
    "true",
  ]),
  ...same(SHORTCUT, "locks/commands", "if (holds === own.held) return;", ["holds === own.held", "false"]),
  ...same(TRACED, "locks/hold-record", "toString(): string { return this.ownerId; }", [/{.*/, "{}"]),
  ...same(
    UNDEFINED,
    "locks/holds",
    "if (resent || own.troubles) own.troubles = resent ? { resent } : undefined;",
    ["resent || own.troubles", "true"],
  ),
  ...same(NOBODY, "locks/loss", "return own.troubles?.forced?.filter((other) => other !== side) ?? [];", [
    "?? []",
    '?? ["Stryker was here"]',
  ]),
  ...same(NOBODY, "locks/release", "for (const call of own.calls ?? []) {", [
    "?? []",
    '?? ["Stryker was here"]',
  ]),
  ...same(THERE, "locks/release", "grant.outcome?.then(resolve, reject);", ["?.", "."]),
  ...same(
    "what is renewed has a time, or is being renewed",
    "locks/renewal",
    "if (grant.renewed && own.renewing === 0 && own.renewAt !== NEVER) next = Math.min(next, own.renewAt);",
    ["own.renewAt !== NEVER", "true"],
  ),
  ...same(
    "without a time nothing is renewed",
    "locks/renewal",
    "if (own.renewing > 0 || own.renewAt === NEVER || own.renewAt > now) return NOTHING;",
    ["own.renewAt === NEVER", "false"],
  ),
  ...same(
    "it is looked at again when it is due",
    "locks/renewal",
    "if (own.renewing > 0 || own.renewAt === NEVER || own.renewAt > now) return NOTHING;",
    ["> now", ">= now"],
  ),
  ...same(
    MEMORY,
    "locks/turns",
    "get idle(): boolean { return this.#active.size === 0 && this.#waiting === 0 && !this.#next; }",
    [/{.*/, "{}"],
  ),
  ...same(SHORTCUT, "locks/turns", "if (!call.awaitsTurn) return;", ["!call.awaitsTurn", "false"]),
  ...same("the siblings that read have the turn as well", "locks/upgrade", "reads = true;", [
    "true",
    "false",
  ]),
]);

/** Why a change cannot be noticed. */
export function reasonFor(title) {
  return EQUIVALENT.get(title);
}
