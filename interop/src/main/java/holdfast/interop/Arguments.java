package holdfast.interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;

/** One call as it was sent. All durations are milliseconds. */
final class Arguments {
    /** What Redisson takes for "no lease": the watchdog renews. */
    static final long NO_LEASE = -1;

    private final JsonObject call;

    Arguments(JsonObject call) {
        this.call = call;
    }

    String client() {
        return textOr("client", "main");
    }

    String thread() {
        return textOr("thread", "main");
    }

    boolean has(String key) {
        return call.has(key) && !call.get(key).isJsonNull();
    }

    String text(String key) {
        if (!has(key)) throw new IllegalArgumentException("the call has no " + key + ": " + call);
        return call.get(key).getAsString();
    }

    String textOr(String key, String otherwise) {
        return has(key) ? call.get(key).getAsString() : otherwise;
    }

    long number(String key) {
        return Long.parseLong(text(key));
    }

    long numberOr(String key, long otherwise) {
        return has(key) ? call.get(key).getAsLong() : otherwise;
    }

    int intOr(String key, int otherwise) {
        return Math.toIntExact(numberOr(key, otherwise));
    }

    long lease() {
        return numberOr("lease", NO_LEASE);
    }

    boolean hasLease() {
        return has("lease");
    }

    boolean hasWait() {
        return has("wait");
    }

    List<String> texts(String key) {
        List<String> texts = new ArrayList<>();
        for (JsonElement each : call.getAsJsonArray(key)) texts.add(each.getAsString());
        return texts;
    }

    List<Arguments> each(String key) {
        List<Arguments> parts = new ArrayList<>();
        for (JsonElement each : call.getAsJsonArray(key)) parts.add(new Arguments(each.getAsJsonObject()));
        return parts;
    }
}
