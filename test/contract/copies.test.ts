/** The copies of the library in one process, ESM and CommonJS, see one chain of scopes and runs. On the package as it is built. */
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forFile, startRedis } from "../support/index.js";
import { failure, type Kind, MULTI, PLAIN, READ } from "../support/place/index.js";
import { isBuilt, loadCjs, loadEsm } from "./helpers.js";

const server = await forFile(startRedis());
const copies = isBuilt ? [{ LockClient }, await loadEsm(), loadCjs()] : [];
const clients: LockClient[] = [];
for (const copy of copies) clients.push(await forFile(new copy.LockClient(server.connect())));

const lockOf = (kind: Kind, client: LockClient, name: string) => kind.make([client], name);
let names = 0;

describe.runIf(isBuilt).each([PLAIN, READ, MULTI])("$name", (kind) => {
  test("a scope that one copy opened is the owner of calls through all copies [§3 scope]", async () => {
    for (const opener of clients)
      for (const user of clients) {
        const lock = lockOf(kind, user, `scope-${++names}`);
        await opener.scope(async () => {
          const outer = await lock.lock();
          expect((await lock.tryLock())?.ownerId).toBe(outer.ownerId);
          await lock.unlock();
          await lock.unlock();
        });
        expect(await lock.isLocked()).toBe(false);
        const error = await lockOf(kind, opener, `run-${names}`).run(() => failure(lock.unlock()));
        expect(error).toMatchObject({ code: "NOT_OWNER" });
      }
  });

  test("an Owner or a Hold of one copy is an owner to the other [§3 owner-option]", async () => {
    const [, esm, cjs] = clients as [LockClient, LockClient, LockClient];
    const owner = esm.newOwner();
    const [used, other] = [lockOf(kind, cjs, "used"), lockOf(kind, esm, "other")];
    const hold = await used.lock({ owner });
    expect((await used.tryLock(0, undefined, { owner }))?.ownerId).toBe(hold.ownerId);
    const elsewhere = await other.lock({ owner: hold });
    await other.unlock({ owner: hold });
    expect(elsewhere.isHeld).toBe(false);
    await used.unlock({ owner });
    await used.unlock({ owner });
    expect(await used.isLocked()).toBe(false);
  });
});
