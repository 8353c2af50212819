/**
 * Five processes take everything that the library has, in random ways, on three servers. At first nothing disturbs
 * them. Then replies are lost, connections stall, and processes and servers are stopped and killed. HOLDFAST_FLEET_SEED
 * plans the faults of a run again.
 */
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { forTest, PATIENCE } from "../support/index.js";
import { Campaign, kindsOn } from "./campaign.js";

const SEED = Number(process.env.HOLDFAST_FLEET_SEED ?? randomInt(2 ** 31));

test("processes that take all kinds of locks while faults come at random never break a promise", {
  timeout: 20 * PATIENCE,
}, async () => {
  const campaign = forTest(
    await Campaign.prepare({ topology: "single", seconds: 11, seed: SEED, calm: 5_000 }),
  );
  const { violations, errors, counts, figures } = await campaign.run();
  console.log(
    `fleet, seed ${SEED}: ${campaign.status.trim()}`,
    JSON.stringify({ counts, figures, slowest: campaign.slowest }),
  );
  expect(violations.slice(0, 20)).toEqual([]);
  expect(errors).toEqual([]);
  expect(Object.keys(figures).sort()).toEqual([...kindsOn("single")].sort());
});
