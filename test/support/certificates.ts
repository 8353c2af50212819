/** Certificates of a test's own authority, made by openssl: one that is valid for 127.0.0.1, and one that has expired. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The reason why this machine cannot make certificates, for `test.skipIf`; undefined if it can. */
export const noCertificates: string | undefined = whyNot();

function whyNot(): string | undefined {
  try {
    const version = execFileSync("openssl", ["version"], { encoding: "utf8" });
    return /OpenSSL [3-9]/.test(version) ? undefined : `openssl is ${version.trim()}, not 3 or later`;
  } catch {
    return "there is no openssl";
  }
}

export interface Certificates extends AsyncDisposable {
  /** The certificate of the authority, which clients are told to trust. */
  readonly ca: string;
  /** Arguments of redis-server: it also listens to TLS on `port`, with that certificate, beside its plain port. */
  argsFor(port: number, which: "good" | "expired"): string[];
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
const DAYS = { good: "1", expired: "-1" };

export async function makeCertificates(): Promise<Certificates> {
  const cwd = await mkdtemp(join(tmpdir(), "holdfast-tls-"));
  const openssl = (...args: string[]) => promisify(execFile)("openssl", args, { cwd });
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const authority = ["-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test authority", "-days", "1"];
  await openssl("req", "-x509", ...NEW_KEY, ...authority);
  await openssl("req", ...NEW_KEY, "-keyout", "server.key", "-out", "server.csr", ...names);
  const signer = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy"];
  for (const [which, days] of Object.entries(DAYS))
    await openssl("x509", "-req", "-in", "server.csr", ...signer, "-days", days, "-out", `${which}.crt`);
  return {
    ca: await readFile(join(cwd, "ca.crt"), "utf8"),
    argsFor: (port, which) => [
      ...["--tls-port", String(port), "--tls-auth-clients", "no", "--tls-ca-cert-file", join(cwd, "ca.crt")],
      ...["--tls-cert-file", join(cwd, `${which}.crt`), "--tls-key-file", join(cwd, "server.key")],
    ],
    [Symbol.asyncDispose]: () => rm(cwd, { recursive: true, force: true }),
  };
}
