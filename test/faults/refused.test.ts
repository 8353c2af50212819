/** Commands that a server or proxy refuses for a while are sent until it takes them: no END is dropped. */
import { type Redis, ReplyError } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forFile, type Matcher, ownConnections, startRedis, until } from "../support/index.js";
import { freshName, script } from "./harness.js";

const server = await forFile(startRedis());

/** A connection to the server; on those that are made of it some commands get an error for a while. */
class Refusal {
  readonly redis: Redis;
  hits = 0;
  #text = "";
  #match: Matcher = () => false;
  /** The refused commands that are executed all the same. */
  #executed: Matcher = () => false;

  constructor() {
    this.redis = server.connect();
    ownConnections(this.redis, (own) => this.#refuseOn(own));
  }

  #refuseOn(own: Redis): void {
    for (const verb of ["eval", "evalsha"] as const) {
      const send = own[verb].bind(own) as (...words: unknown[]) => Promise<unknown>;
      const answer = async (...words: unknown[]): Promise<unknown> => {
        if (!this.#match([verb.toUpperCase(), ...words.map(String)])) return send(...words);
        this.hits++;
        const text = this.#text;
        if (this.#executed([verb.toUpperCase(), ...words.map(String)])) await send(...words);
        throw new ReplyError(text);
      };
      own[verb] = answer as never;
    }
  }

  begin(text: string, match: Matcher, executed: Matcher = () => false): void {
    this.#text = text;
    this.#match = match;
    this.#executed = executed;
    this.hits = 0;
  }

  end(): void {
    this.#match = () => false;
  }

  /** Resolves when the command was refused often enough that the client has repeated it. */
  async again(): Promise<void> {
    await until("it has been tried again", () => this.hits >= 3, { timeout: 15_000 });
  }
}

const SHA1 = "0123456789abcdef0123456789abcdef01234567";
const before7 = (inner: string) => `ERR Error running script (call to f_${SHA1}): @user_script:9: ${inner}`;

const PASSING = [
  before7("@user_script: 9: -READONLY You can't write against a read only replica."),
  before7("@user_script: 9: -OOM command not allowed when used memory > 'maxmemory'."),
  "ERR upstream failure",
  "NEWCODE something that no server says yet",
];

let refusal: Refusal;
let client: LockClient;
let name: string;
beforeEach(() => {
  refusal = new Refusal();
  client = new LockClient(refusal.redis);
  name = freshName();
});
afterEach(async () => {
  refusal.end();
  await client.close({ timeout: 0 });
  refusal.redis.disconnect();
});

describe.each(PASSING)("%s", (text) => {
  test("an unlock is sent again, and resolves [F24] [B29]", async () => {
    const hold = await client.getLock(name).lock();
    refusal.begin(text, script("end"));
    const unlocked = hold.unlock();
    unlocked.catch(() => {});
    await refusal.again();
    refusal.end();
    await unlocked;
    expect(await server.call("EXISTS", name)).toBe(0);
  });

  test("a grant behind that answer is given back [B29]", async () => {
    const [take, end] = [script("take"), script("end")];
    refusal.begin(text, (words) => take(words) || end(words), take);
    const call = client.getLock(name).tryLock(200);
    await expect(call).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await server.call("EXISTS", name)).toBe(1);
    refusal.hits = 0;
    await refusal.again();
    refusal.end();
    await until("it is free", async () => (await server.call("EXISTS", name)) === 0);
  });
});

describe("a refusal that will not pass rejects at once", () => {
  test.each([
    ["NOPERM this user has no permissions to run the 'hdel' command", "UNSUPPORTED"],
    [
      before7("@user_script: 9: The user executing the script can't run this command or subcommand"),
      "UNSUPPORTED",
    ],
    [before7("@user_script: 9: Unknown Redis command called from Lua script"), "UNSUPPORTED"],
    ["ERR user_script:9: attempt to index a nil value", "UNAVAILABLE"],
    [before7("user_script:9: attempt to index a nil value"), "UNAVAILABLE"],
    ["ERR Error compiling script (new function): user_script:1: unexpected symbol near '!'", "UNAVAILABLE"],
  ])("%s", async (text, code) => {
    const hold = await client.getLock(name).lock();
    refusal.begin(text, script("end"));
    await expect(hold.unlock()).rejects.toMatchObject({ code });
    expect(refusal.hits).toBe(1);
  });

  test("foreign data on a server before Redis 7", async () => {
    refusal.begin(
      before7("WRONGTYPE Operation against a key holding the wrong kind of value"),
      script("take"),
    );
    const error = await client
      .getLock(name)
      .tryLock()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: "WRONG_DATA",
      cause: { message: expect.stringMatching(/^WRONGTYPE/) },
    });
  });

  test("the cause of a call that was refused is what the command said, without the frame of its script", async () => {
    const hasty = new LockClient(refusal.redis, { commandTimeout: 200 });
    refusal.begin(
      before7("@user_script: 9: -LOADING Redis is loading the dataset in memory"),
      script("inspect"),
    );
    await expect(hasty.getLock(name).isLocked()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      cause: { message: "LOADING Redis is loading the dataset in memory" },
    });
    await hasty.close();
  });
});
