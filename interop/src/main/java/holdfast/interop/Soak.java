package holdfast.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.LongAdder;
import org.redisson.api.RedissonClient;

/**
 * The Java side of the soak, as test/fleet/worker.mjs is the other: threads that take locks in every way, and do in
 * each what only one may do at a time, or what no writer may be beside. One of them for each client.
 */
final class Soak {
    private static final ConcurrentHashMap<String, Soak> RUNNING = new ConcurrentHashMap<>();

    final RedissonClient client;
    final SoakJournal journal;
    final List<String> kinds;
    /** Of the leases that are given, in ms. */
    final long leastLease;
    final long mostLease;
    /** What Redisson keeps a hold for that was given none, in ms. */
    final long watchdog;
    /** The grace of each place in the line of a fair lock, in ms. */
    final long fairWait;
    /** For how long a hold must go on for the use of the counter, in ms. */
    final long safe;
    /** Whether readers may stay for so long that they have to be renewed. */
    final boolean longReads;
    /** The mistake to make, if any. */
    final String planted;

    private final ConcurrentHashMap<String, LongAdder> figures = new ConcurrentHashMap<>();
    private final Queue<String> errors = new ConcurrentLinkedQueue<>();
    private final List<Thread> tasks = new ArrayList<>();
    private volatile boolean stopping;

    private Soak(RedissonClient client, RedissonClient witness, Arguments arguments) {
        this.client = client;
        journal = new SoakJournal(witness, arguments);
        kinds = arguments.texts("kinds");
        leastLease = Long.parseLong(arguments.texts("lease").get(0));
        mostLease = Long.parseLong(arguments.texts("lease").get(1));
        watchdog = arguments.number("watchdog");
        fairWait = arguments.number("fairWait");
        safe = arguments.number("safe");
        longReads = arguments.has("longReads");
        planted = arguments.textOr("planted", "none");
        begin("cool", arguments);
        begin("hot", arguments);
    }

    /** As many tasks as coolTasks and hotTasks say, on as many locks as cool and hot say; some of them stand in lines. */
    private void begin(String heat, Arguments arguments) {
        int threads = arguments.intOr(heat + "Tasks", 0);
        for (int i = 0; i < threads; i++) {
            boolean lines = i < arguments.intOr("inLine", threads);
            long seed = arguments.number("seed") + tasks.size();
            tasks.add(new SoakTask(this, heat, arguments.intOr(heat, 1), lines, seed));
        }
    }

    static void start(Clients clients, Arguments arguments) {
        RedissonClient witness = clients.get(arguments.text("witness"));
        Soak soak = new Soak(clients.get(arguments.client()), witness, arguments);
        RUNNING.put(arguments.client(), soak);
        soak.tasks.forEach(Thread::start);
    }

    /** When all tasks have come to their end: how often what happened, and the errors. */
    static JsonObject stop(Arguments arguments) throws InterruptedException {
        Soak soak = RUNNING.remove(arguments.client());
        soak.stopping = true;
        for (Thread task : soak.tasks) task.join();
        JsonObject report = new JsonObject();
        soak.figures.forEach((figure, count) -> report.addProperty(figure, count.sum()));
        JsonArray errors = new JsonArray();
        soak.errors.forEach(errors::add);
        report.add("errors", errors);
        return report;
    }

    boolean isStopping() {
        return stopping;
    }

    void count(String figure) {
        figures.computeIfAbsent(figure, any -> new LongAdder()).increment();
    }

    void fail(String lock, String way, Throwable error) {
        StringBuilder text = new StringBuilder("Java, " + way + " of " + lock + ": " + error);
        for (StackTraceElement each : error.getStackTrace()) {
            if (each.getClassName().startsWith("holdfast.")) text.append("\n    at ").append(each);
        }
        errors.add(text.toString());
    }
}
