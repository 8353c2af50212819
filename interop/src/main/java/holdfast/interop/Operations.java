package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** What a call can ask for, by its kind and operation. Called on the thread that shall own what it takes. */
final class Operations {
    private Operations() {}

    static JsonElement perform(Clients clients, Arguments arguments) throws Exception {
        String op = arguments.text("op");
        switch (op) {
            case "connect":
                return json(clients.connect(arguments));
            case "shutdown":
                clients.shutdown(arguments.client());
                return JsonNull.INSTANCE;
            case "soak":
                Soak.start(clients, arguments);
                return JsonNull.INSTANCE;
            case "stopSoak":
                return Soak.stop(arguments);
            case "bench":
                return Bench.perform(clients.get(arguments.client()), arguments);
            case "threadId":
                return json(Long.toString(Thread.currentThread().getId()));
            default:
                break;
        }
        RedissonClient client = clients.get(arguments.client());
        switch (arguments.text("kind")) {
            case "semaphore":
                return semaphore(client.getSemaphore(arguments.text("name")), op, arguments);
            case "permits":
                return permits(client.getPermitExpirableSemaphore(arguments.text("name")), op, arguments);
            case "latch":
                return latch(client.getCountDownLatch(arguments.text("name")), op, arguments);
            default:
                return lock(Locks.get(client, arguments), op, arguments);
        }
    }

    private static JsonElement lock(RLock lock, String op, Arguments arguments) throws Exception {
        switch (op) {
            case "lock":
                if (arguments.hasLease()) lock.lockInterruptibly(arguments.lease(), MILLISECONDS);
                else lock.lockInterruptibly();
                return JsonNull.INSTANCE;
            case "tryLock":
                return json(tryLock(lock, arguments));
            case "unlock":
                lock.unlock();
                return JsonNull.INSTANCE;
            case "forceUnlock":
                return json(lock.forceUnlock());
            case "isLocked":
                return json(lock.isLocked());
            case "isHeldByCurrentThread":
                return json(lock.isHeldByCurrentThread());
            case "getHoldCount":
                return json(lock.getHoldCount());
            case "remainTimeToLive":
                return json(lock.remainTimeToLive());
            case "lockAndGetToken":
                return json(text(((RFencedLock) lock).lockAndGetToken()));
            case "getToken":
                return json(text(((RFencedLock) lock).getToken()));
            default:
                throw unknown(op);
        }
    }

    private static boolean tryLock(RLock lock, Arguments arguments) throws InterruptedException {
        if (arguments.hasLease()) return lock.tryLock(arguments.numberOr("wait", 0), arguments.lease(), MILLISECONDS);
        if (arguments.hasWait()) return lock.tryLock(arguments.number("wait"), MILLISECONDS);
        return lock.tryLock();
    }

    private static JsonElement semaphore(RSemaphore semaphore, String op, Arguments arguments) throws Exception {
        int permits = arguments.intOr("permits", 1);
        switch (op) {
            case "trySetPermits":
                return json(semaphore.trySetPermits(permits));
            case "acquire":
                semaphore.acquire(permits);
                return JsonNull.INSTANCE;
            case "tryAcquire":
                if (!arguments.hasWait()) return json(semaphore.tryAcquire(permits));
                return json(semaphore.tryAcquire(permits, arguments.number("wait"), MILLISECONDS));
            case "release":
                semaphore.release(permits);
                return JsonNull.INSTANCE;
            case "addPermits":
                semaphore.addPermits(permits);
                return JsonNull.INSTANCE;
            case "availablePermits":
                return json(semaphore.availablePermits());
            case "drainPermits":
                return json(semaphore.drainPermits());
            default:
                throw unknown(op);
        }
    }

    private static JsonElement permits(RPermitExpirableSemaphore semaphore, String op, Arguments arguments)
            throws Exception {
        switch (op) {
            case "trySetPermits":
                return json(semaphore.trySetPermits(arguments.intOr("permits", 1)));
            case "setPermits":
                semaphore.setPermits(arguments.intOr("permits", 1));
                return JsonNull.INSTANCE;
            case "addPermits":
                semaphore.addPermits(arguments.intOr("permits", 1));
                return JsonNull.INSTANCE;
            case "acquire":
                if (arguments.hasLease()) return json(semaphore.acquire(arguments.lease(), MILLISECONDS));
                return json(semaphore.acquire());
            case "tryAcquire":
                return json(tryAcquire(semaphore, arguments));
            case "release":
                semaphore.release(arguments.text("permitId"));
                return JsonNull.INSTANCE;
            case "tryRelease":
                return json(semaphore.tryRelease(arguments.text("permitId")));
            case "updateLeaseTime":
                return json(semaphore.updateLeaseTime(arguments.text("permitId"), arguments.lease(), MILLISECONDS));
            case "availablePermits":
                return json(semaphore.availablePermits());
            case "acquiredPermits":
                return json(semaphore.acquiredPermits());
            case "getPermits":
                return json(semaphore.getPermits());
            default:
                throw unknown(op);
        }
    }

    private static String tryAcquire(RPermitExpirableSemaphore semaphore, Arguments arguments) throws Exception {
        long wait = arguments.numberOr("wait", 0);
        if (arguments.hasLease()) return semaphore.tryAcquire(wait, arguments.lease(), MILLISECONDS);
        return arguments.hasWait() ? semaphore.tryAcquire(wait, MILLISECONDS) : semaphore.tryAcquire();
    }

    private static JsonElement latch(RCountDownLatch latch, String op, Arguments arguments) throws Exception {
        switch (op) {
            case "trySetCount":
                return json(latch.trySetCount(arguments.intOr("count", 1)));
            case "countDown":
                latch.countDown();
                return JsonNull.INSTANCE;
            case "await":
                if (arguments.hasWait()) return json(latch.await(arguments.number("wait"), MILLISECONDS));
                latch.await();
                return json(true);
            case "getCount":
                return json(latch.getCount());
            case "delete":
                return json(latch.delete());
            default:
                throw unknown(op);
        }
    }

    private static IllegalArgumentException unknown(String op) {
        return new IllegalArgumentException("there is no operation " + op + " of this kind");
    }

    private static String text(Long number) {
        return number == null ? null : number.toString();
    }

    private static JsonElement json(String value) {
        return value == null ? JsonNull.INSTANCE : new JsonPrimitive(value);
    }

    private static JsonElement json(boolean value) {
        return new JsonPrimitive(value);
    }

    private static JsonElement json(long value) {
        return new JsonPrimitive(value);
    }
}
