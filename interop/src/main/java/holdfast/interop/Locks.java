package holdfast.interop;

import java.util.List;
import org.redisson.RedissonMultiLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Lock objects by kind. */
final class Locks {
    private Locks() {}

    static RLock get(RedissonClient client, Arguments arguments) {
        String kind = arguments.text("kind");
        if (kind.equals("multi")) return multiLock(client, arguments.each("members"));
        return get(client, kind, arguments.text("name"));
    }

    static RLock get(RedissonClient client, String kind, String name) {
        switch (kind) {
            case "lock":
                return client.getLock(name);
            case "fair":
                return client.getFairLock(name);
            case "fenced":
                return client.getFencedLock(name);
            case "read":
                return client.getReadWriteLock(name).readLock();
            case "write":
                return client.getReadWriteLock(name).writeLock();
            case "spin":
                return client.getSpinLock(name);
            case "nonReentrant":
                return nonReentrant(client, name);
            default:
                throw new IllegalArgumentException("there is no kind " + kind);
        }
    }

    /** Since 4.4.0; found by its name, so that this compiles with older ones. */
    private static RLock nonReentrant(RedissonClient client, String name) {
        try {
            return (RLock) RedissonClient.class.getMethod("getNonReentrantLock", String.class).invoke(client, name);
        } catch (ReflectiveOperationException missing) {
            throw new UnsupportedOperationException("this Redisson has no non-reentrant lock", missing);
        }
    }

    private static RLock multiLock(RedissonClient client, List<Arguments> members) {
        RLock[] locks = members.stream()
                .map(member -> get(client, member.text("kind"), member.text("name")))
                .toArray(RLock[]::new);
        return new RedissonMultiLock(locks);
    }
}
