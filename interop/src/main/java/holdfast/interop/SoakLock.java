package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import holdfast.interop.SoakJournal.Grant;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.client.RedisTimeoutException;
import org.redisson.client.codec.StringCodec;

/**
 * A lock, or one side of one, as the soak takes it: with what the journal is to know of each grant.
 *
 * @param name in the journal
 * @param sides of a read-write lock; null of others
 */
record SoakLock(Soak soak, String kind, String name, RLock lock, boolean shared, RReadWriteLock sides) {
    static final long NO_LEASE = Arguments.NO_LEASE;
    static final long NO_LIMIT = -1;

    private static final long NS = 1_000_000;
    /** Longer than anybody has to wait. */
    private static final long VERY_LONG = 120_000;
    private static final AtomicLong GRANTS = new AtomicLong();

    boolean isFair() {
        return kind.equals("fair");
    }

    SoakLock side(boolean shared) {
        return new SoakLock(soak, kind, name, shared ? sides.readLock() : sides.writeLock(), shared, sides);
    }

    /** Null if it was not to be had. */
    Grant take(long wait, long lease) throws InterruptedException {
        long askedAt = System.nanoTime();
        Long token = null;
        boolean granted;
        try {
            if (lock instanceof RFencedLock fenced) {
                token = tokenOf(fenced, wait, lease);
                granted = token != null;
            } else {
                granted = isGranted(lock, wait, lease);
            }
        } catch (RedisTimeoutException error) {
            // A short wait that is over before Redisson comes to listen.
            if (wait <= 0 || !error.getMessage().contains("subscription lock")) throw error;
            soak.count("silent");
            return null;
        }
        if (granted) return settle(askedAt, lease, token, 1);
        if (wait == NO_LIMIT) throw new IllegalStateException("it waited for " + VERY_LONG + " ms");
        soak.count("refused");
        return null;
    }

    private static boolean isGranted(RLock lock, long wait, long lease) throws InterruptedException {
        if (wait == 0 && lease == NO_LEASE) return lock.tryLock();
        if (wait != NO_LIMIT) return lock.tryLock(wait, lease, MILLISECONDS);
        if (lease == NO_LEASE) lock.lock();
        else lock.lock(lease, MILLISECONDS);
        return true;
    }

    private static Long tokenOf(RFencedLock lock, long wait, long lease) {
        if (wait == NO_LIMIT && lease == NO_LEASE) return lock.lockAndGetToken();
        return lock.tryLockAndGetToken(wait == NO_LIMIT ? VERY_LONG : wait, lease, MILLISECONDS);
    }

    /** The server says when the lease ends; the clock from before the question makes it early rather than late. */
    Grant settle(long askedAt, long lease, Long token, int holds) {
        String owner = soak.client.getId() + ":" + Thread.currentThread().getId();
        String unique = owner + ":" + GRANTS.incrementAndGet();
        long enteredAt = System.nanoTime();
        Long deadline = lease == NO_LEASE ? null : Long.valueOf(enteredAt + (remaining(owner) - 1) * NS);
        long term = (lease == NO_LEASE ? soak.watchdog : lease) * holds;
        return new Grant(name, unique, shared, askedAt, enteredAt, deadline, term, token);
    }

    /** What is left of a grant that is renewed, should it not be renewed again; null if it is over. */
    Grant look(Grant grant) {
        long now = System.nanoTime();
        long left = remaining(soak.client.getId() + ":" + Thread.currentThread().getId());
        return left == 0 ? null : grant.until(now + (left - 1) * NS);
    }

    /** Of a read hold its own key tells; the TTL of others is ours if we hold the lock after we have seen it. */
    private long remaining(String owner) {
        if (shared) {
            String hold = "{" + lock.getName() + "}:" + owner + ":rwlock_timeout:1";
            return Math.max(0, soak.client.getBucket(hold, StringCodec.INSTANCE).remainTimeToLive());
        }
        long ttl = lock.remainTimeToLive();
        return lock.isHeldByCurrentThread() ? Math.max(0, ttl) : 0;
    }

    /** A hold that may be over need not be there any more. */
    void give(Grant grant) {
        try {
            lock.unlock();
        } catch (IllegalMonitorStateException error) {
            if (grant.isHeld()) throw error;
            soak.count("lost");
        }
    }
}
