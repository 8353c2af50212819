// A lock that is granted to every call at once. The bench has to notice.
export const meta = { name: "never-excludes", version: "0", client: "ioredis" };

export async function create(env) {
  const redis = await env.connect(0);
  const call = async () => {
    await redis.ping();
    return {};
  };
  return { acquire: call, release: call, close: () => redis.disconnect() };
}
