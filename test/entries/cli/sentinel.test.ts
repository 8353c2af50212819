/** The program by a sentinel: a URL of rediss:// is TLS on the whole way. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  findRedis,
  freePort,
  makeCertificates,
  noCertificates,
  noTlsOf,
  releasePort,
  startRedis,
} from "../../support/index.js";
import { startSentinelProcess } from "../../support/sentinel-process.js";
import { type Ended, PROGRAM } from "./program.js";

const PASSWORD = "pa55-w0rd";
const WATCH = { name: "main", quorum: 1, downAfter: 10_000, failoverTimeout: 10_000 };
const noTls = noCertificates ?? noTlsOf(await findRedis());

describe.skipIf(noTls)(`with TLS${noTls ? `: skipped, ${noTls}` : ""}`, () => {
  test("a URL of rediss:// reaches the master by TLS alone, one of redis:// without it [B142]", async () => {
    await using certificates = await makeCertificates();
    const folder = await mkdtemp(join(tmpdir(), "holdfast-cli-"));
    const [ofMaster, ofSentinel] = [await freePort(), await freePort()];
    await using master = await startRedis({
      password: PASSWORD,
      args: certificates.argsFor(ofMaster, "good"),
    });
    const { host, password } = master;
    const args = [...certificates.argsFor(ofSentinel, "good"), "--tls-replication", "yes"];
    const secured = { host, port: ofMaster, password };
    const sentinels = await Promise.all([
      startSentinelProcess({ ...WATCH, master }),
      startSentinelProcess({ ...WATCH, master: secured, args }),
    ]);
    onTestFinished(async () => {
      await Promise.all(sentinels.map((sentinel) => sentinel.stop()));
      for (const port of [ofMaster, ofSentinel]) releasePort(port);
      await rm(folder, { recursive: true });
    });
    await writeFile(join(folder, "ca.crt"), certificates.ca);
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "ca.crt") };
    const list = (protocol: string, port: number | undefined): Promise<Ended> =>
      new Promise((resolve) => {
        const url = `${protocol}://:${PASSWORD}@127.0.0.1:${port}`;
        const words = [PROGRAM, "ls", "--url", url, "--sentinel", WATCH.name];
        const child = execFile(process.execPath, words, { env }, (_error, out, err) => {
          resolve({ code: child.exitCode, out, err });
        });
      });
    const plain = sentinels[0]?.port;
    const [byPlain, tlsToPlain, byTls] = await Promise.all([
      list("redis", plain),
      list("rediss", plain),
      list("rediss", ofSentinel),
    ]);
    const listed = { code: 0, out: "Nothing is held.\n" };
    expect(byPlain).toMatchObject(listed);
    // It gives what speaks no TLS no word in plain text.
    expect(tlsToPlain).toMatchObject({ code: 69, out: "" });
    expect(byTls).toEqual({ ...listed, err: "" });
  });
});
