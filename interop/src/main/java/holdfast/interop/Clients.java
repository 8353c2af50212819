package holdfast.interop;

import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ShardedSubscriptionMode;

/** The Redisson clients by their names in the calls. */
final class Clients {
    private final ConcurrentHashMap<String, RedissonClient> clients = new ConcurrentHashMap<>();

    RedissonClient get(String name) {
        RedissonClient client = clients.get(name);
        if (client == null) throw new IllegalArgumentException("no client is named " + name);
        return client;
    }

    /**
     * Options: url, or nodes of a cluster, or sentinels with the name of their master; watchdog, fairWait (ms), sharded (AUTO, ON, OFF), threads; asItComes: with
     * Redisson's own settings for the rest.
     */
    String connect(Arguments arguments) {
        Config config = new Config();
        config.setLockWatchdogTimeout(arguments.numberOr("watchdog", config.getLockWatchdogTimeout()));
        if (arguments.has("asItComes")) {
            if (arguments.has("sentinels")) {
                config.useSentinelServers()
                        .setMasterName(arguments.text("master"))
                        .addSentinelAddress(arguments.texts("sentinels").toArray(new String[0]));
            } else {
                config.useSingleServer().setAddress(arguments.text("url"));
            }
            return open(config, arguments);
        }
        config.setThreads(arguments.intOr("threads", 16));
        config.setNettyThreads(4);
        if (arguments.has("fairWait")) setFairLockWaitTimeout(config, arguments.number("fairWait"));
        if (arguments.has("nodes")) {
            var servers = config.useClusterServers();
            servers.addNodeAddress(arguments.texts("nodes").toArray(new String[0]));
            servers.setShardedSubscriptionMode(ShardedSubscriptionMode.valueOf(arguments.textOr("sharded", "AUTO")));
            servers.setMasterConnectionMinimumIdleSize(2);
            servers.setSlaveConnectionMinimumIdleSize(2);
        } else {
            var server = config.useSingleServer();
            server.setAddress(arguments.text("url"));
            server.setConnectionMinimumIdleSize(2);
        }
        return open(config, arguments);
    }

    private String open(Config config, Arguments arguments) {
        RedissonClient client = Redisson.create(config);
        clients.put(arguments.client(), client);
        return client.getId();
    }

    /** A setting since 3.46.0; before, the time was five minutes always. */
    private static void setFairLockWaitTimeout(Config config, long ms) {
        try {
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, ms);
        } catch (ReflectiveOperationException missing) {
            throw new UnsupportedOperationException("this Redisson cannot set fairLockWaitTimeout", missing);
        }
    }

    void shutdown(String name) {
        RedissonClient client = clients.remove(name);
        if (client != null) client.shutdown();
    }

    /** Of all clients. */
    void shutdown() {
        clients.keySet().parallelStream().forEach(this::shutdown);
    }
}
