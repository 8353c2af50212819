/** The program by a sentinel: a URL of rediss:// is TLS on the whole way. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
} from "../../support/index.js";
import { type SentinelProcess, startSentinelProcess } from "../../support/sentinel-process.js";
import { type Ended, PROGRAM } from "./program.js";

const PASSWORD = "pa55-w0rd";
const WATCH = { name: "main", quorum: 1, downAfter: 10_000, failoverTimeout: 10_000 };
const noTls = noCertificates ?? noTlsOf(await findRedis());

describe.skipIf(noTls)(`with TLS${noTls ? `: skipped, ${noTls}` : ""}`, () => {
  let certificates: Certificates;
  let folder: string;
  let master: RedisServer;
  const ports: number[] = [];
  const sentinels: SentinelProcess[] = [];

  beforeAll(async () => {
    certificates = await makeCertificates();
    folder = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
    await writeFile(join(folder, "ca.crt"), certificates.ca);
    const [ofMaster, ofSentinel] = [await freePort(), await freePort()];
    ports.push(ofMaster, ofSentinel);
    master = await startRedis({ password: PASSWORD, args: certificates.argsFor(ofMaster, "good") });
    sentinels.push(await startSentinelProcess({ ...WATCH, master }));
    const { host, password } = master;
    const args = [...certificates.argsFor(ofSentinel, "good"), "--tls-replication", "yes"];
    sentinels.push(
      await startSentinelProcess({ ...WATCH, master: { host, port: ofMaster, password }, args }),
    );
  });
  afterAll(async () => {
    await Promise.all(sentinels.map((sentinel) => sentinel.stop()));
    await master?.stop();
    for (const port of ports) releasePort(port);
    await certificates?.[Symbol.asyncDispose]();
    if (folder) await rm(folder, { recursive: true });
  });

  function list(protocol: string, port: number | undefined): Promise<Ended> {
    const url = `${protocol}://:${PASSWORD}@127.0.0.1:${port}`;
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "ca.crt") };
    return new Promise((resolve) => {
      const args = [PROGRAM, "ls", "--url", url, "--sentinel", WATCH.name];
      const child = execFile(process.execPath, args, { env }, (_error, out, err) => {
        resolve({ code: child.exitCode, out, err });
      });
    });
  }

  test("a URL of redis:// is served by what speaks no TLS, one of rediss:// gives it no word in plain text [B142]", async () => {
    const plain = sentinels[0]?.port;
    expect(await list("redis", plain)).toMatchObject({ code: 0, out: "Nothing is held.\n" });
    expect(await list("rediss", plain)).toMatchObject({ code: 69, out: "" });
  });

  test("a URL of rediss:// reaches the master by TLS, too [B142]", async () => {
    expect(await list("rediss", ports[1])).toMatchObject({ code: 0, out: "Nothing is held.\n", err: "" });
  });
});
