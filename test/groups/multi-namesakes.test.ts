/** Members of a MultiLock that have one key, by different clients: on one server they are one lock, elsewhere they are two. */
import { describe, expect, test } from "vitest";
import { type Lock, LockClient, MultiLock } from "../../src/index.js";
import { failsSoon, script, soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, NEVER, useStages } from "./helpers.js";

const stages = await useStages();

const patient = { pollCap: NEVER };
const isQuestion = script("state");

describe.concurrent("on one server", () => {
  test.for<[string, (hall: Hall) => Lock[]]>([
    ["two locks", (hall) => [hall.lock(0, "a"), hall.lock(1, "a")]],
    [
      "two locks, and one of another key",
      (hall) => [hall.lock(0, "b"), hall.lock(0, "a"), hall.lock(1, "b")],
    ],
    [
      "two locks, of which one client has a prefix",
      (hall) => [hall.lock(2, "a"), hall.client(0).getLock(`app:${hall.name("a")}`)],
    ],
    ["two fair locks", (hall) => [0, 1].map((i) => hall.client(i).getFairLock(hall.name("a")))],
    ["two write sides", (hall) => [hall.write(0, "a"), hall.write(1, "a")]],
    ["a read side and a write side", (hall) => [hall.read(0, "a"), hall.write(1, "a")]],
  ])("%s: UNSUPPORTED, and nothing is left [B130]", async ([_, members], { expect }) => {
    await using hall = await Hall.of(stages, patient, patient, { ...patient, prefix: "app" });
    const multi = new MultiLock(...members(hall));
    const refused = { code: "UNSUPPORTED", lockName: multi.name };
    expect(await failsSoon(watch(multi.lock()))).toMatchObject(refused);
    expect(await failsSoon(watch(multi.tryLock()))).toMatchObject(refused);
    expect(await failsSoon(watch(multi.run(() => {}, { wait: NEVER })))).toMatchObject(refused);
    await hall.expectNothingLeft();
  });

  test("read sides of one key are granted together, also after a writer", async () => {
    await using hall = await Hall.of(stages, patient, patient, {});
    const theirs = await hall.write(2, "a").lock();
    const call = await hall.parked("a", () => new MultiLock(hall.read(0, "a"), hall.read(1, "a")).lock());
    await theirs.unlock();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });

  test("locks of one key in two databases are two locks", async () => {
    await using hall = await Hall.of(stages, patient, {});
    await using elsewhere = new LockClient(hall.bed(1).proxy.connect({ db: 1 }), patient);
    await using stranger = new LockClient(hall.bed(1).proxy.connect({ db: 1 }));
    const theirs = await stranger.getLock(hall.name("a")).lock();
    const call = await hall.parked("a", () =>
      new MultiLock(hall.lock(0, "a"), elsewhere.getLock(hall.name("a"))).lock(),
    );
    await theirs.unlock();
    await (await soon(call)).unlock();
    await hall.expectNothingLeft();
  });
});

test("on two servers they are two locks: one question for the life of the MultiLock, and only when the second is refused", async () => {
  await using hall = await Hall.of(stages, patient, { ...patient, server: 1 }, { server: 1 });
  const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "a"));
  const asked = () => [0, 1].map((i) => hall.scripts(i).filter(({ command }) => isQuestion(command)).length);
  await (await multi.lock()).unlock();
  expect([hall.scripts(0).length, hall.scripts(1).length]).toEqual([2, 2]);
  for (let n = 0; n < 2; n++) {
    const theirs = await hall.lock(2, "a").lock();
    expect(await multi.tryLock()).toBeNull();
    const call = watch(multi.lock());
    await until("it waits", async () => (await hall.channels()).length > 0);
    await theirs.unlock();
    await (await soon(call)).unlock();
    expect(asked()).toEqual([0, 1]);
  }
  await hall.expectNothingLeft();
});
