/**
 * Runs the table of consumers: all rows with `npm run test:consumers`, else only the short ones that need no
 * installation.
 */
import { expect, test } from "vitest";
import { forFile, PATIENCE, startRedis } from "../../support/index.js";
import { PackedPackage } from "./consumer.js";
import { isLocal, runRow, Unavailable } from "./consumers/run.js";
import { ROWS } from "./consumers/table.js";
import { installVersions } from "./versions/install.js";

const ALL = process.env.HOLDFAST_CONSUMERS === "all";
const rows = ROWS.filter((row) => ALL || (isLocal(row) && !row.long));

const [redis, packed, missing] = await Promise.all([
  forFile(startRedis()),
  forFile(PackedPackage.create()),
  installVersions(),
]);

test.for(rows.map((row) => [row.name, row] as const))(
  "%s",
  { timeout: 30 * PATIENCE },
  async ([, row], { skip }) => {
    if (row.impossible) skip(row.impossible);
    if (missing && row.name.startsWith("TypeScript ")) skip(missing);
    try {
      const printed = await runRow(row, packed, redis.url);
      if (typeof row.prints === "string") expect(printed).toBe(row.prints);
      else if (row.prints) expect(printed).toMatch(row.prints);
    } catch (error) {
      if (error instanceof Unavailable) skip(error.message);
      throw error;
    }
  },
);
