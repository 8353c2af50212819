package holdfast.interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * Does with Redisson what it is told: one JSON object a line on stdin, one answer a line on stdout, in the order in
 * which the calls end. A call names a client and a thread; the calls of one thread run one after the other. It ends with
 * its stdin. After the call `listen`, whose answer is a port, each connection to that port is told the same way, and
 * has clients and threads of its own.
 */
public final class Driver {
    private final Clients clients = new Clients();
    private final Workers workers = new Workers();
    private final PrintStream out;

    private Driver(OutputStream out) {
        this.out = new PrintStream(out, true, StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws IOException {
        Driver driver = new Driver(new FileOutputStream(FileDescriptor.out));
        // Whatever else prints may not come between the answers.
        System.setOut(System.err);
        driver.follow(System.in);
        // No good-bye to Redis: whoever wants one closes its clients first.
        Runtime.getRuntime().halt(0);
    }

    /** Returns when the other side has closed. */
    private void follow(InputStream calls) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(calls, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            accept(JsonParser.parseString(line).getAsJsonObject());
        }
    }

    private static int listen() throws IOException {
        ServerSocket server = new ServerSocket(0, 0, InetAddress.getLoopbackAddress());
        start("listener", () -> {
            while (true) {
                Socket socket = server.accept();
                start("connection", () -> serve(socket));
            }
        });
        return server.getLocalPort();
    }

    private static void serve(Socket connected) throws IOException {
        try (Socket socket = connected) {
            socket.setTcpNoDelay(true);
            Driver driver = new Driver(socket.getOutputStream());
            try {
                driver.follow(socket.getInputStream());
            } finally {
                driver.workers.end();
                driver.clients.shutdown();
            }
        }
    }

    private interface Task {
        void run() throws IOException;
    }

    private static void start(String name, Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (IOException gone) {
                // A process at the other end was killed.
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void accept(JsonObject call) throws IOException {
        Arguments arguments = new Arguments(call);
        if (arguments.text("op").equals("listen")) {
            answer(call, new JsonPrimitive(listen()), System.nanoTime());
            return;
        }
        if (arguments.text("op").equals("interrupt")) {
            workers.interrupt(arguments.client(), arguments.thread());
            answer(call, JsonNull.INSTANCE, System.nanoTime());
            return;
        }
        if (arguments.text("op").equals("isAsleep")) {
            boolean asleep = workers.isAsleep(arguments.client(), arguments.thread());
            answer(call, new JsonPrimitive(asleep), System.nanoTime());
            return;
        }
        workers.run(arguments.client(), arguments.thread(), () -> perform(call, arguments));
    }

    private void perform(JsonObject call, Arguments arguments) {
        try {
            JsonElement value = Operations.perform(clients, arguments);
            answer(call, value, System.nanoTime());
        } catch (Throwable error) {
            long at = System.nanoTime();
            JsonObject reply = new JsonObject();
            reply.addProperty("error", error.getClass().getName());
            reply.addProperty("message", messageOf(error));
            send(call, reply, at);
        }
    }

    /** With its causes, in which Redisson keeps what Redis said. */
    private static String messageOf(Throwable error) {
        String message = String.valueOf(error.getMessage());
        Throwable cause = error.getCause();
        return cause == null || cause == error ? message : message + "; " + messageOf(cause);
    }

    private void answer(JsonObject call, JsonElement value, long at) {
        JsonObject reply = new JsonObject();
        reply.add("value", value);
        send(call, reply, at);
    }

    /** @param at when the call ended, on the clock that all processes of a machine share; text, as it needs 64 bits */
    private void send(JsonObject call, JsonObject reply, long at) {
        reply.add("id", call.get("id"));
        reply.addProperty("at", Long.toString(at));
        synchronized (out) {
            out.println(reply);
        }
    }
}
