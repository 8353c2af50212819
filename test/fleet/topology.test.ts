/**
 * Two minutes of the fleet on one topology, another one each day. The date is the seed, so that all runs of a day are
 * alike; HOLDFAST_FLEET_DAY (a number of days) is another one.
 */
import { expect, test } from "vitest";
import { forTest, PATIENCE } from "../support/index.js";
import { Campaign } from "./campaign.js";
import { summaryOf } from "./report.js";
import { TOPOLOGIES, type Topology } from "./sites.js";

const DAY = Number(process.env.HOLDFAST_FLEET_DAY ?? Math.floor(Date.now() / 86_400_000));
const topology = TOPOLOGIES[DAY % TOPOLOGIES.length] as Topology;

test("two minutes of random faults on the topology of the day break no promise", {
  timeout: 40 * PATIENCE,
}, async () => {
  const campaign = forTest(await Campaign.prepare({ topology, seconds: 120, seed: DAY }));
  const { violations, errors } = await campaign.run();
  console.log(`fleet, day ${DAY}: ${summaryOf(campaign).join("\n")}`);
  expect(violations.slice(0, 20)).toEqual([]);
  expect(errors).toEqual([]);
  expect(campaign.acquisitions).toBeGreaterThan(0);
});
