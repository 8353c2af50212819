/** The chain of scopes and runs around a call: what has ended does not stay in it. In virtual time. */
import { expect } from "vitest";
import { type LockClient, MultiLock } from "../../src/index.js";
import { currentFrame } from "../../src/owners/context.js";
import { deferred, type Scene, scene, testIn, watch } from "./scene.js";

const test = testIn(() => scene());

type Job = () => Promise<void>;

const SORTS: Readonly<Record<string, (client: LockClient, job: Job, i: number) => Promise<void>>> = {
  scopes: (client, job) => client.scope(job),
  runs: (client, job, i) => client.getLock(`job-${i}`).run(job),
  "runs of one lock": (client, job) => client.getLock("job").run(job),
  "runs of a named owner": (client, job, i) =>
    client.getLock(`job-${i}`).run(job, { owner: client.newOwner() }),
  "runs of a group": (client, job, i) =>
    new MultiLock(client.getLock(`job-${i}`), client.getLock(`job-${i}-too`)).run(job),
};

/** How many scopes and runs the current call reaches. */
function reached(): number {
  let frames = 0;
  for (let frame = currentFrame(); frame; frame = frame.parent) frames++;
  return frames;
}

/** Runs jobs, each of which begins the next one and settles then; resolves with how many frames each has reached. */
async function chain({ a, settle }: Scene, sort: string, jobs: number): Promise<number[]> {
  const reaches: number[] = [];
  const begun: Promise<void>[] = [];
  const begin = (i: number): void => {
    const job = async (): Promise<void> => {
      reaches.push(reached());
      await undefined;
      if (i < jobs) begin(i + 1);
    };
    begun.push(SORTS[sort]?.(a.client, job, i) ?? Promise.resolve());
  };
  begin(1);
  while (reaches.length < jobs) await settle();
  await Promise.all(begun);
  return reaches;
}

test.for(Object.keys(SORTS))(
  "an unbroken chain of %s, each begun before the one before has settled, keeps none that has ended [B228]",
  async (sort, place) => {
    const reaches = await chain(place, sort, 50);
    expect(reaches).toHaveLength(50);
    // A frame, and what was open when the one before began; a run of a group has one more for each member.
    expect(Math.max(...reaches)).toBeLessThan(10);
  },
);

test("a call is still inside an open run, whatever has ended between them", async ({ a, settle }) => {
  const { client } = a;
  const lock = client.getLock("job");
  const [firstMayGoOn, secondMayGoOn] = [deferred(), deferred()];
  const outer = watch(
    lock.run(async (hold) => {
      const second = async (): Promise<string> => {
        await secondMayGoOn.promise;
        // A run of the same owner, which has to wait for the outer one unless it is inside.
        return lock.run(() => "inside", { owner: hold });
      };
      const first = async () => {
        await firstMayGoOn.promise;
        return { second: client.scope(second) };
      };
      const begun = await client.scope(() => ({ first: client.scope(first) }));
      firstMayGoOn.resolve();
      const { second: last } = await begun.first;
      secondMayGoOn.resolve();
      return last;
    }),
  );
  await settle();
  expect(outer.value).toBe("inside");
});
