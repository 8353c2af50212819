package holdfast.interop;

import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import org.redisson.misc.ReclosableLatch;

/** The threads: one for each name of each client. To Redisson a thread is an owner. */
final class Workers {
    private static final Set<String> PARKING = Set.of(Semaphore.class.getName(), ReclosableLatch.class.getName());

    private final ConcurrentHashMap<String, Worker> workers = new ConcurrentHashMap<>();

    void run(String client, String thread, Runnable task) {
        workers.computeIfAbsent(key(client, thread), Worker::new).tasks.add(task);
    }

    void interrupt(String client, String thread) {
        Worker worker = workers.get(key(client, thread));
        if (worker != null) worker.interrupt();
    }

    /** Whether it waits for a message: Redisson parks whoever does in a semaphore, or in a latch of its own. */
    boolean isAsleep(String client, String thread) {
        Worker worker = workers.get(key(client, thread));
        if (worker == null) return false;
        return Arrays.stream(worker.getStackTrace())
                .anyMatch(frame -> PARKING.contains(frame.getClassName()));
    }

    /** Of all threads: what they wait for is interrupted. */
    void end() {
        workers.values().forEach(Worker::end);
    }

    private static String key(String client, String thread) {
        return client + "/" + thread;
    }

    private static final class Worker extends Thread {
        private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
        private volatile boolean over;

        Worker(String name) {
            super(name);
            setDaemon(true);
            start();
        }

        void end() {
            over = true;
            interrupt();
        }

        @Override
        public void run() {
            while (!over) {
                try {
                    tasks.take().run();
                } catch (InterruptedException interrupted) {
                    // The interrupt came too late for its call. The next one starts without.
                }
            }
        }
    }
}
