/**
 * The sentences of the contract: what a user of the library can rely on, by section and key. Rows name them in their titles, as
 * `[§2 extend-later]`; a sentence that no title names is reported by the check of ids (test/delivery/docs).
 */
export const SENTENCES = {
  // 1. Client
  "§1 options": "Each option has its default and its bounds; what is wrong is refused by the constructor.",
  "§1 connect":
    "LockClient.connect takes a URL or ioredis' options, is synchronous, and the client owns the connection.",
  "§1 own-connections":
    "The client makes its own connections, one for commands and one for messages, and never sends on, changes or closes the given one.",
  "§1 given-connection-in-use":
    "A blocking command, MULTI, SELECT, subscriber mode, a long pipeline or quit() on the given connection does not touch a lock.",
  "§1 options-read-anew":
    "The options of the given connection are read anew at each connect: a new password is used.",
  "§1 reconnect":
    "Own connections resend and reconnect: 500 ms at most between attempts, at once after READONLY, and after commandTimeout of silence.",
  "§1 unreferenced": "Own connections and timers keep no process alive while nothing is held or asked.",
  "§1 key-prefix": "A connection with ioredis' keyPrefix is refused with a TypeError that names `prefix`.",
  "§1 prefix": "`prefix` is put before every name on the server, and nowhere else.",
  "§1 reentrancy-explicit":
    'With reentrancy "explicit" only { owner } re-enters, and scope and run hand the owner to their function.',
  "§1 same-lock":
    "A lock is its client, name and side: two objects of one client re-enter, another client is a stranger.",
  "§1 ready":
    "ready() resolves when the client is connected and the server is new enough and permits the commands; else it rejects with a typed error.",
  "§1 close":
    "close() refuses new calls, rejects waiters with CLIENT_CLOSED, gives holds up to `timeout` to end, then ends the rest as closed; it is idempotent and ends timers and own connections.",
  "§1 close-ends-holds":
    "A hold that close() ends: its signal aborts with LOCK_LOST (closed), then it is released; its unlock() resolves, its run rejects LOCK_LOST.",
  "§1 events":
    "Events carry one object with lockName, kind, ownerId and what fits; an unheard error throws nothing, and a listener that throws disturbs no lock.",
  "§1 inspect": "inspect(name) tells who holds a lock and who waits, or null when it is free.",
  "§1 list": "list() goes through all locks of every master by SCAN, with names without the prefix.",

  // 2. Locks
  "§2 one-round-trip":
    "One round trip takes a free lock, one gives it back; a nested acquire or release takes one.",
  "§2 wait":
    "`wait` bounds the whole call; lock and run wait without limit by default, tryLock does not wait.",
  "§2 wait-timeout":
    "lock and run without a lock within `wait` reject WAIT_TIMEOUT; tryLock gives null, which always means contention.",
  "§2 unavailable":
    "A call without an answer within commandTimeout (or a shorter wait that is not 0) rejects UNAVAILABLE.",
  "§2 last-try-unanswered": "A call whose last try has no answer when its wait ends rejects UNAVAILABLE.",
  "§2 waiting-survives-outage":
    "A call that waits already, or stands behind another waiter of its process, survives an outage.",
  "§2 signal":
    "`signal` ends only the wait, at once, with signal.reason; if it is aborted already, nothing is sent.",
  "§2 force-unlock": "forceUnlock() ends whoever holds it and says whether anybody did.",
  "§2 queries":
    "isLocked, isHeldByCurrentOwner, getHoldCount and remainTimeToLive ask Redis; the owner's own are false and 0 without a call for who holds nothing.",
  "§2 hold-count-own":
    "getHoldCount is this process's own count, 0 if Redis has nothing of the owner any more.",
  "§2 lease": "Without a lease the watchdog renews until unlock; a given lease is never renewed.",
  "§2 hold-face":
    "A Hold has lockName, ownerId, acquiredAt, signal, isHeld, assertHeld, remaining, extend, unlock and asyncDispose.",
  "§2 remaining-from-send":
    "`remaining` counts from when the command was sent, less drift; isHeld is false from the local deadline on.",
  "§2 one-deadline":
    "An owner has one deadline on a lock, however many holds: the latest that any acquire, renewal or extend was granted.",
  "§2 nested-never-shortens":
    "A nested acquire may lengthen the owner's deadline, never shorten it; leases never add up.",
  "§2 unlock-keeps-deadline": "An unlock that is not the last changes no deadline.",
  "§2 shared-loss":
    "All holds of an owner share remaining, signal and a loss; isHeld of each also ends with its own unlock.",
  "§2 watchdog-any": "The watchdog renews as long as one of the holds was taken without a lease.",
  "§2 ttl-never-lowered":
    "No command of a holder lowers the TTL of a lock, except that the end of a reader leaves it as long as the longest reader left.",
  "§2 extend-later":
    "extend moves the owner's deadline to now + lease if that is later; with a renewed hold never below watchdogTimeout.",
  "§2 extend-earlier":
    "extend to an earlier time moves only the deadline here: then the holds end as expired and the lock is given back; others wait for the old end if the process dies.",
  "§2 extend-errors": "extend rejects LOCK_LOST if the hold is lost, NOT_OWNER if it is given back.",
  "§2 unlock-hold":
    "hold.unlock() works from any context, in any order; isHeld is false from the call on, and a second call shares the first one's outcome.",
  "§2 unlock-unavailable":
    "After UNAVAILABLE a release goes on in the background, and a further unlock asks again.",
  "§2 lost-is-final":
    "Lost is final, for all holds of the owner on that lock: signal, isHeld, unlock and run agree, even if Redis would have kept it.",
  "§2 lost-unlock-once":
    "The unlock of a lost hold rejects LOCK_LOST once and drops it; the owner's next acquire starts afresh.",
  "§2 loss-noticed":
    "A loss on the server is noticed at the next renewal, extend, nested call or unlock; by a leased hold at its deadline.",
  "§2 late-grant":
    "A grant that arrives at or after its deadline is given back, and the call rejects LOCK_LOST; a call that had waited goes on waiting.",
  "§2 run": "run locks, runs the function, unlocks; the function's error always wins.",
  "§2 run-lost": "If the function succeeds and the hold was lost, run rejects LOCK_LOST with its result.",
  "§2 run-release-unanswered":
    "If only the release gets no answer, run resolves, the release goes on, and `error` is emitted.",
  "§2 run-unlock-inside": "hold.unlock() inside the function is allowed; run then gives nothing back.",
  "§2 counts-once": "A command whose reply is lost, and which is sent again, counts once.",
  "§2 nothing-left":
    "A call that has ended leaves nothing in the process, and nothing on the server as soon as Redis answers again.",
  "§2 nested-unknown": "A nested call without a known outcome leaves the outer hold as it is.",
  "§2 always-ttl": "No code path leaves a lock key without TTL; markers have one of at most 60 s.",
  "§2 woken-by-message": "A waiter is woken by message and costs Redis nothing while it waits.",
  "§2 poll-cap":
    "Without a message only the first local waiter tries again, when the holder's TTL ends or after pollCap.",
  "§2 subscriber-dropped": "A dropped subscriber connection costs no waiter its wake-up.",
  "§2 hand-over-bound":
    "A lock that goes from hand to hand inside a process leaves it after 50 ms while others wait, or with the hold that is open then.",
  "§2 wire-id-once": "A hold's wire id is never used again, so a late unlock never frees a later hold.",

  // 3. Owners and reentrancy
  "§3 bare-calls":
    "Bare calls outside any scope are a new owner each; nothing re-enters but inside a run of that lock or with { owner }.",
  "§3 bare-unlock":
    "lock.unlock() outside a scope rejects NOT_OWNER, and names hold.unlock() and client.scope.",
  "§3 scope": "In a scope all act for one owner: lock() twice re-enters.",
  "§3 scope-unlock":
    "lock.unlock() gives back the innermost hold that this scope took by lock or tryLock, never one of a run or group; the Hold's own unlock() shares its outcome.",
  "§3 run-tree": "The outermost run of a tree makes an owner, for which all runs inside it act, of any lock.",
  "§3 nested-runs": "Nested runs of a lock re-enter.",
  "§3 parallel-runs":
    "Parallel runs of one owner take turns; a run waits only for active ones that do not enclose it.",
  "§3 turns-of-sides":
    "For turns both sides of a read-write lock are one lock: sibling reads share, writes and reads wait for each other.",
  "§3 ends":
    "A scope or run ends when its function settles; calls from contexts that outlive it are outside any scope.",
  "§3 listeners-outside": "Listeners and timers of the library run outside every scope.",
  "§3 owner-option": "options.owner overrides the ambient owner; run with owner makes it ambient.",
  "§3 scope-in-scope": "A scope inside a scope is a new owner.",
  "§3 call-order": "Calls of one owner count in call order, and no command waits for the answer to another.",
  "§3 second-while-first-waits":
    "A second lock() while the first still waits re-enters as soon as either is granted.",
  "§3 unlock-during-nested": "An unlock() while a nested call is on its way leaves the lock to that call.",
  "§3 lock-after-last-unlock": "A lock() called after the last unlock() was called is a new acquisition.",

  // 4. Kinds
  "§4 fair":
    "A fair lock is first come first served over all processes; who leaves holds nobody up, who dies is skipped after three times pollCap.",
  "§4 fenced": "hold.token rises strictly with each outermost grant; a re-entrant acquire has the same one.",
  "§4 read-write": "Many readers or one writer; both sides are reentrant.",
  "§4 downgrade":
    "The writer may take the read side and so downgrade without a gap, which wakes waiting readers.",
  "§4 upgrade-refused": "Who holds only the read side and asks for the write side is refused at once.",
  "§4 reader-leases": "Each reader has its own lease; a dead one lapses by itself.",
  "§4 prefer-writers": "Waiting writers go before new readers; who reads already re-enters past them.",
  "§4 multi": "A MultiLock takes all members or none, and never waits while holding.",
  "§4 multi-lease": "Members are taken with the lease and raised to it with the last one.",
  "§4 red": "A RedLock is granted by a majority of masters in time, else given back everywhere.",
  "§4 red-kept": "The watchdog keeps it while a majority renews in time, else it is lost.",
  "§4 red-quorum": "QUORUM only if the first round gets no majority of answers; a waiting call goes on.",
  "§4 red-unlock": "A RedLock's unlock resolves when a majority has confirmed.",
  "§4 group-face": "Groups have the face of a lock: name, members, queries, forceUnlock, errors.",
  "§4 group-arguments":
    "The same lock twice, fewer than three members of a RedLock, or two at one address are refused by the constructor.",

  // 5. Semaphores and latch
  "§5 semaphore":
    "A semaphore hands out as many permits as there are, in the order of waiting, and takes them back.",
  "§5 permits":
    "An expirable permit has an id and a lease, or is kept by the watchdog; one it cannot keep is announced by lost.",
  "§5 latch": "A latch lets all go when it is counted down to 0.",
  "§5 counts-once": "Each call of semaphores and latches counts once.",
  "§5 arguments": "Numbers of permits are integers of at least 1, counts and limits of at least 0.",

  // 6. Errors
  "§6 codes":
    "Each error has its class, its code, the lock's name, and a text that says what happened and what to do.",
  "§6 is-lock-error": "isLockError works across copies of the library.",
  "§6 reasons": "LockLostError.reason is the best known: forced, taken, expired, unreachable or closed.",
  "§6 cause":
    "UNAVAILABLE has a cause whenever anything is known: the connection's last error with host and port.",
  "§6 unsupported":
    "An old server, a missing command or permission, and a wrong password reject UNSUPPORTED and say which.",
  "§6 arguments": "Wrong arguments reject with TypeError or RangeError before anything is sent.",
  "§6 wrong-data": "A key that holds other data rejects WRONG_DATA by every operation, and stays untouched.",
  "§6 no-secrets": "No error text, event or log carries a password, a URL or script arguments.",
  "§6 no-unhandled": "No internal promise rejects unhandled, and no timer keeps an idle process alive.",

  // 7. Wire format
  "§7 wire": "Keys, fields, values, channels and messages are those of Redisson.",

  // 8. Who holds it, who waits
  "§8 label": "label and id name this process to people.",
  "§8 presence":
    "With presence a client tells what it holds and waits for, by one key with a TTL, in one command a round.",
  "§8 holder-client": "inspect tells the client and since of holders and waiters that presence knows.",
  "§8 kinds-all": "inspect and list show semaphores, permits and latches when asked for all kinds.",
  "§8 stats": "stats() counts calls, holds, losses, renewals and commands, with histograms of wait and hold.",
  "§8 rejected-gave-up": "rejected, gaveUp, acquired.nested and longHold tell what became of a call.",
  "§8 current-hold": "currentHold() is the innermost hold of the current owner, or null.",
  "§8 wait-timeout-holder": "WAIT_TIMEOUT names the holder as far as known, and is never late for it.",
  "§8 garbage":
    "A bare hold without lease whose Hold was garbage-collected is given back at a renewal, with one warning for each place.",
  "§8 diagnostics": "diagnostics_channel has a call on holdfast:lock and a hold on holdfast:hold.",
} as const;
