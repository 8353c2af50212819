export const meta = {
  name: "simple-redis-mutex",
  package: "simple-redis-mutex",
  client: "node-redis",
  notes:
    "over node-redis, its only client; waits by pub/sub, and tries every 10 s; SET, INCR of a token, EVALSHA",
};

export async function create(env) {
  const [{ createClient }, { default: library }] = await Promise.all([
    import("redis"),
    import("simple-redis-mutex"),
  ]);
  const [socket] = env.servers;
  const client = createClient({ socket });
  client.on("error", () => {});
  await client.connect();
  return {
    acquire: (key, timeout) => library.lock(client, key, { timeout }),
    release: (release) => release(),
    close: () => client.destroy(),
  };
}
