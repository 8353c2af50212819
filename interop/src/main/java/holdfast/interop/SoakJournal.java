package holdfast.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Keeps the journal on the witness, by scripts that the call brings: see test/interop/crowd/java-journal.ts. */
final class SoakJournal {
    private static final long NS = 1_000_000;

    private final RScript witness;
    private final String process;
    private final String enter;
    private final String leave;
    private final AtomicLong last = new AtomicLong();

    SoakJournal(RedissonClient witness, Arguments arguments) {
        this.witness = witness.getScript(StringCodec.INSTANCE);
        process = arguments.text("name");
        enter = arguments.text("enter");
        leave = arguments.text("leave");
    }

    /**
     * What is known of a stay when it begins.
     *
     * @param owner unique to this grant
     * @param deadline of System.nanoTime, before which the hold cannot be over; null if it is renewed
     * @param lease ms for which it stays if its holder dies
     * @param token null if there is none
     */
    record Grant(
            String lock, String owner, boolean shared, long askedAt, long enteredAt, Long deadline, long lease, Long token) {

        Grant until(long deadline) {
            return new Grant(lock, owner, shared, askedAt, enteredAt, deadline, lease, token);
        }

        boolean isHeld() {
            return goesOn(0);
        }

        /** Whether it surely goes on for so many ms. */
        boolean goesOn(long ms) {
            return deadline == null || deadline - System.nanoTime() > ms * NS;
        }
    }

    record Stay(String id, Grant grant, long value) {
        Stay with(Grant seen) {
            return new Stay(id, seen, value);
        }
    }

    Stay enter(Grant grant) {
        String id = process + ":" + last.incrementAndGet();
        String deadline = grant.deadline() == null ? "-" : grant.deadline().toString();
        String token = token(grant);
        String entry = String.join(
                " ",
                "E",
                id,
                grant.lock(),
                Long.toString(grant.askedAt()),
                Long.toString(grant.enteredAt()),
                Long.toString(grant.lease()),
                deadline,
                grant.owner(),
                grant.shared() ? "shared" : "alone",
                token,
                "-");
        String value = eval(enter, keys(grant.lock()), id, entry, grant.shared() ? "1" : "", token);
        return new Stay(id, grant, Long.parseLong(value));
    }

    /** @param sure whether the counter is used: not if the hold may be over when that arrives */
    void leave(Stay stay, boolean sure) {
        Grant grant = stay.grant();
        boolean held = grant.isHeld();
        String entry = held ? "L " + stay.id() + " " + System.nanoTime() : "X " + stay.id() + " " + grant.deadline();
        String write = sure && !grant.shared() ? Long.toString(stay.value() + 1) : "";
        String expect = sure && grant.shared() ? Long.toString(stay.value()) : "";
        List<Object> keys = new ArrayList<>(keys(grant.lock()));
        keys.add("writes:" + grant.lock());
        eval(leave, keys, stay.id(), entry, write, expect, token(grant));
    }

    private String eval(String script, List<Object> keys, Object... values) {
        return witness.eval(RScript.Mode.READ_WRITE, script, RScript.ReturnType.VALUE, keys, values);
    }

    private List<Object> keys(String lock) {
        return List.of("inside:" + lock, "readers:" + lock, "counter:" + lock, "journal:" + process, "fence:" + lock);
    }

    private static String token(Grant grant) {
        return grant.token() == null ? "-" : grant.token().toString();
    }
}
