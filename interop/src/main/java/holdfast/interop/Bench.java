package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** The loops of the comparison, with a thread where bench/redisson-worker.mjs, the other side, has a task. */
final class Bench {
    private static final long LEASE = 10_000;
    private static final long LONG_LEASE = 600_000;
    private static final long NS = 1_000_000;

    private final RedissonClient client;
    private final Arguments arguments;

    private Bench(RedissonClient client, Arguments arguments) {
        this.client = client;
        this.arguments = arguments;
    }

    static JsonElement perform(RedissonClient client, Arguments arguments) throws Exception {
        Bench bench = new Bench(client, arguments);
        String scenario = arguments.text("scenario");
        switch (scenario) {
            case "cycles":
                return bench.cycles();
            case "handOver":
                return bench.handOver();
            case "park":
                return bench.park();
            case "keep":
                bench.locks("kept", arguments.intOr("locks", 1)).forEach(RLock::lock);
                return JsonNull.INSTANCE;
            case "giveBack":
                bench.locks("kept", arguments.intOr("locks", 1)).forEach(RLock::unlock);
                return JsonNull.INSTANCE;
            case "cpu":
                return new JsonPrimitive(cpuTime());
            default:
                throw new IllegalArgumentException("there is no scenario " + scenario);
        }
    }

    /** Takes a second of all threads, each on a lock of its own, for so many ms. */
    private JsonElement cycles() throws Exception {
        List<RLock> locks = locks("own", arguments.intOr("tasks", 1));
        long start = System.nanoTime();
        long end = start + arguments.number("ms") * NS;
        List<Long> counts = together(locks.size(), i -> () -> {
            long cycles = 0;
            while (System.nanoTime() < end) {
                locks.get(i).lock(LEASE, MILLISECONDS);
                locks.get(i).unlock();
                cycles++;
            }
            return cycles;
        });
        long cycles = counts.stream().mapToLong(Long::longValue).sum();
        return new JsonPrimitive(cycles * 1e9 / (System.nanoTime() - start));
    }

    /** All threads on one lock: when each stay in it began and ended, in ns. Inside, a counter is read and written. */
    private JsonElement handOver() throws Exception {
        RBucket<String> counter = client.getBucket("bench:counter", StringCodec.INSTANCE);
        RLock lock = client.getLock("bench:wanted");
        long end = System.nanoTime() + arguments.number("ms") * NS;
        List<List<long[]>> stays = together(arguments.intOr("tasks", 1), i -> () -> {
            List<long[]> own = new ArrayList<>();
            while (System.nanoTime() < end) {
                lock.lock(LEASE, MILLISECONDS);
                long entered = System.nanoTime();
                counter.set(Long.toString(Long.parseLong(counter.get()) + 1));
                own.add(new long[] {entered, System.nanoTime()});
                lock.unlock();
            }
            return own;
        });
        JsonArray all = new JsonArray();
        for (List<long[]> own : stays) {
            for (long[] stay : own) {
                JsonArray pair = new JsonArray();
                pair.add(stay[0]);
                pair.add(stay[1]);
                all.add(pair);
            }
        }
        return all;
    }

    /** Threads that wait for a lock for as long as this process lives; another holds it. */
    private JsonElement park() {
        RLock lock = client.getLock("bench:parked");
        lock.lock(LONG_LEASE, MILLISECONDS);
        for (int i = 0; i < arguments.intOr("tasks", 1); i++) {
            Thread waiter = new Thread(lock::lock);
            waiter.setDaemon(true);
            waiter.start();
        }
        return JsonNull.INSTANCE;
    }

    private List<RLock> locks(String purpose, int count) {
        List<RLock> locks = new ArrayList<>();
        for (int i = 0; i < count; i++) locks.add(client.getLock("bench:" + purpose + ":" + i));
        return locks;
    }

    /** What these come to that start at the same time. */
    private static <T> List<T> together(int count, IntFunction<Callable<T>> task) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        CountDownLatch start = new CountDownLatch(1);
        List<Future<T>> running = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Callable<T> each = task.apply(i);
            running.add(threads.submit(() -> {
                start.await();
                return each.call();
            }));
        }
        start.countDown();
        List<T> results = new ArrayList<>();
        for (Future<T> each : running) results.add(each.get());
        threads.shutdown();
        return results;
    }

    /** Of this process, in ms. */
    private static double cpuTime() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return (double) system.getProcessCpuTime() / NS;
    }
}
