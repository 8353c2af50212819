/**
 * TLS: a good certificate works. With an expired one, one of another authority, or the wrong protocol, calls are
 * UNAVAILABLE with the cause.
 */
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failure, untilWaiting } from "../contract/helpers.js";
import {
  type Certificates,
  findRedis,
  freePort,
  makeCertificates,
  noCertificates,
  noTlsOf,
  type RedisServer,
  releasePort,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";
import { failOnUnhandledRejections } from "./harness.js";

const PASSWORD = "pa55-w0rd";

failOnUnhandledRejections();

const noTls = noCertificates ?? noTlsOf(await findRedis());

describe.skipIf(noTls)(`with TLS [F45]${noTls ? `: skipped, ${noTls}` : ""}`, () => {
  let certificates: Certificates;
  const servers: Partial<Record<"good" | "expired", { server: RedisServer; port: number }>> = {};

  beforeAll(async () => {
    certificates = await makeCertificates();
    for (const which of ["good", "expired"] as const) {
      const port = await freePort();
      const args = certificates.argsFor(port, which);
      servers[which] = { server: await startRedis({ password: PASSWORD, args }), port };
    }
  });
  afterAll(async () => {
    for (const { server, port } of Object.values(servers)) {
      await server.stop();
      releasePort(port);
    }
    await certificates?.[Symbol.asyncDispose]();
  });

  const port = (which: "good" | "expired"): number => servers[which]?.port ?? 0;

  test("a lock is taken, waited for and given back", async () => {
    const target = {
      host: "127.0.0.1",
      port: port("good"),
      password: PASSWORD,
      tls: { ca: certificates.ca },
    };
    await using ours = LockClient.connect(target, UNHURRIED);
    await using theirs = LockClient.connect(target, UNHURRIED);
    const hold = await ours.getLock("order").lock();
    const waiter = await untilWaiting(theirs, () => theirs.getLock("order").lock());
    await hold.unlock();
    await (await waiter.done).unlock();
  });

  // ioredis listens to the first error of a socket only, and Vitest fails a run for an error without a listener.
  test("certificates that are refused again and again end no process [B10]", async () => {
    const clients = Array.from({ length: 20 }, () => {
      return LockClient.connect({ host: "127.0.0.1", port: port("good"), tls: {} }, UNHURRIED);
    });
    let errors = 0;
    for (const client of clients) client.on("error", () => errors++);
    const calls = clients.map((client) => failure(client.getLock("refused").lock()));
    await until("they have tried again", () => errors > 100);
    await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
    await Promise.all(calls);
  });

  test.concurrent.each([
    ["an expired certificate", () => ({ port: port("expired"), tls: { ca: certificates.ca } }), /expired/],
    ["an authority that nobody trusts", () => ({ port: port("good"), tls: {} }), /certificate/],
    [
      "a name that the certificate does not have",
      () => ({ port: port("good"), tls: { ca: certificates.ca, servername: "else.where" } }),
      /altnames/,
    ],
    ["TLS to a plain port", () => ({ port: servers.good?.server.port ?? 0, tls: {} }), /./],
    ["no TLS to a TLS port", () => ({ port: port("good") }), /./],
  ])("%s: UNAVAILABLE, with the cause and without a secret", async (_, target, cause) => {
    const options = { host: "127.0.0.1", password: PASSWORD, ...target() };
    await using client = LockClient.connect(options, { commandTimeout: 2_000 });
    const error = await failure(client.getLock("order").lock());
    expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { message: expect.stringMatching(cause) } });
    const text = inspect(error, { depth: 10, showHidden: true, getters: true });
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toMatch(/PRIVATE KEY|BEGIN CERTIFICATE/);
  });
});
