package holdfast.interop;

import static holdfast.interop.SoakLock.NO_LEASE;
import static holdfast.interop.SoakLock.NO_LIMIT;
import static java.util.concurrent.TimeUnit.MILLISECONDS;

import holdfast.interop.SoakJournal.Grant;
import holdfast.interop.SoakJournal.Stay;
import java.util.Random;
import org.redisson.api.RReadWriteLock;

/**
 * A thread of the soak, with the ways in which it takes a lock. What Redisson does not survive, also without this library,
 * is left out:
 *
 * <ul>
 *   <li>A writer gives back the write side before the read side that it took inside. The release of a read ends the
 *       renewal of the write side, or cuts its lease to that of another read.
 *   <li>Holds of one thread on one side of a lock are all leased or all renewed: the first release would end the renewal.
 *   <li>No lease is longer than the watchdog's: renewal, and a release that leaves holds, set the TTL that readers share
 *       to that.
 *   <li>A timed wait for a fair lock is as long as fairLockWaitTimeout. Redisson takes the wait for the grace of the
 *       place, and that off the times of all others.
 *   <li>No long stay in a fair lock: who waits for it in Java lapses, after the TTL seen at first and one grace.
 *   <li>No long reads where renewal does not keep them: before 4.4.0, of all names that a client reads, that of one.
 *   <li>A fenced lock with a lease is not asked for by lockAndGetToken, which overlooks the lease.
 *   <li>No thread is interrupted while it waits in line: it would stay there.
 * </ul>
 */
final class SoakTask extends Thread {
    /** One in so many visits. */
    private static final int LONG_STAYS = 30;
    /** Ms. */
    private static final int LOOK_EVERY = 50;

    private final Soak soak;
    private final String heat;
    private final int names;
    private final boolean lines;
    private final Random random;

    SoakTask(Soak soak, String heat, int names, boolean lines, long seed) {
        this.soak = soak;
        this.heat = heat;
        this.names = names;
        this.lines = lines;
        random = new Random(seed);
        setDaemon(true);
    }

    private interface Way {
        void go(SoakLock lock) throws InterruptedException;
    }

    @Override
    public void run() {
        while (!soak.isStopping()) {
            String kind = soak.kinds.get(random.nextInt(soak.kinds.size()));
            if (kind.equals("fair") && !lines) continue;
            String name = kind + "-" + heat + "-" + random.nextInt(names);
            int way = random.nextInt(7);
            try {
                wayOf(way).go(open(kind, name));
            } catch (Throwable error) {
                soak.fail(name, "way " + way, error);
            }
        }
    }

    private Way wayOf(int way) {
        switch (way) {
            case 0:
                return this::plainly;
            case 1:
                return this::leased;
            case 2:
                return this::tried;
            case 3:
                return this::triedOnce;
            case 4:
                return this::nested;
            case 5:
                return this::outlasted;
            default:
                return lock -> {
                    if (lock.sides() != null) downgraded(lock);
                    else plainly(lock);
                };
        }
    }

    private SoakLock open(String kind, String name) {
        if (kind.equals("readwrite") || kind.equals("unranked")) {
            RReadWriteLock sides = soak.client.getReadWriteLock(name);
            return new SoakLock(soak, kind, name, null, false, sides).side(random.nextInt(3) < 2);
        }
        // The same lock to others, but that it wakes nobody.
        boolean spins = kind.equals("lock") && random.nextInt(4) == 0;
        return new SoakLock(soak, kind, name, Locks.get(soak.client, spins ? "spin" : kind, name), false, null);
    }

    private void plainly(SoakLock lock) throws InterruptedException {
        Grant grant = lock.take(NO_LIMIT, NO_LEASE);
        boolean canStay = !lock.isFair() && (soak.longReads || !lock.shared());
        boolean stays = canStay && heat.equals("cool") && random.nextInt(LONG_STAYS) == 0;
        if (stays && grant.isHeld()) {
            lock.give(stayOn(lock, grant));
            return;
        }
        stay(lock, grant, random.nextInt(4));
        lock.give(grant);
    }

    /**
     * Past the first TTL. A renewal that is under way while a thread gives back and takes anew finds nothing, and Redisson forgets
     * the new hold with the old one: it lapses untold. So it is looked after, and is over where it was last seen to end.
     */
    private Grant stayOn(SoakLock lock, Grant grant) throws InterruptedException {
        Stay stay = soak.journal.enter(grant);
        long end = System.nanoTime() + MILLISECONDS.toNanos(soak.watchdog * 13 / 10);
        Grant seen = grant;
        Grant look = lock.look(grant);
        while (look != null && System.nanoTime() < end) {
            seen = look;
            Thread.sleep(LOOK_EVERY);
            look = lock.look(grant);
        }
        if (look == null) soak.count("forgotten");
        Grant last = look == null ? seen : look;
        leave(lock, stay.with(last));
        return last;
    }

    private void leased(SoakLock lock) throws InterruptedException {
        takeAndGive(lock, NO_LIMIT, anyLease());
    }

    private void tried(SoakLock lock) throws InterruptedException {
        takeAndGive(lock, lock.isFair() ? soak.fairWait : random.nextInt(60), anyLease());
    }

    private void triedOnce(SoakLock lock) throws InterruptedException {
        takeAndGive(lock, 0, anyLease());
    }

    private void takeAndGive(SoakLock lock, long wait, long lease) throws InterruptedException {
        Grant grant = lock.take(wait, lease);
        if (grant == null) return;
        stay(lock, grant, random.nextInt(4));
        lock.give(grant);
    }

    /** Re-entered once. */
    private void nested(SoakLock lock) throws InterruptedException {
        long lease = anyLease();
        Grant outer = lock.take(NO_LIMIT, lease);
        if (!outer.goesOn(soak.safe)) {
            lock.give(outer);
            return;
        }
        if (lease == NO_LEASE) lock.lock().lock();
        else lock.lock().lock(lease, MILLISECONDS);
        int count = lock.lock().getHoldCount();
        if (count == 2) {
            // A write lock's leases add up.
            Grant inner = lock.settle(outer.askedAt(), lease, outer.token(), 2);
            soak.count("nested");
            stay(lock, inner, random.nextInt(4));
            lock.give(inner);
        } else if (outer.isHeld()) {
            throw new IllegalStateException("held " + count + " times, not twice");
        }
        lock.give(outer);
    }

    /** Often longer than the lease: what others do after it is no concern of this one. */
    private void outlasted(SoakLock lock) throws InterruptedException {
        long lease = 60 + random.nextInt(120);
        Grant grant = lock.take(NO_LIMIT, lease);
        if (grant.isHeld()) {
            Stay stay = soak.journal.enter(grant);
            Thread.sleep(random.nextInt((int) lease * 3 / 2));
            soak.journal.leave(stay, false);
            note(lock);
        }
        if (soak.planted.equals("forces")) lock.lock().forceUnlock();
        else lock.give(grant);
    }

    /** A writer goes on as a reader, with no gap for another writer. */
    private void downgraded(SoakLock lock) throws InterruptedException {
        SoakLock writing = lock.side(false);
        SoakLock reading = lock.side(true);
        Grant written = writing.take(NO_LIMIT, NO_LEASE);
        stay(writing, written, random.nextInt(4));
        Grant read = reading.take(NO_LIMIT, anyLease());
        Stay stay = read.isHeld() ? soak.journal.enter(read) : null;
        writing.give(written);
        if (stay != null) {
            Thread.sleep(random.nextInt(4));
            leave(reading, stay);
            soak.count("downgraded");
        }
        reading.give(read);
    }

    private long anyLease() {
        if (random.nextBoolean()) return NO_LEASE;
        return soak.leastLease + random.nextInt((int) (soak.mostLease - soak.leastLease) + 1);
    }

    private void stay(SoakLock lock, Grant grant, long ms) throws InterruptedException {
        if (!grant.isHeld()) return;
        Stay stay = soak.journal.enter(grant);
        Thread.sleep(ms);
        leave(lock, stay);
    }

    private void leave(SoakLock lock, Stay stay) {
        soak.journal.leave(stay, stay.grant().goesOn(soak.safe));
        note(lock);
    }

    private void note(SoakLock lock) {
        soak.count("sections");
        soak.count(lock.kind());
    }
}
