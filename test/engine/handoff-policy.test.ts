/** The decisions of the hand-over policy, rule by rule. */
import { describe, test } from "vitest";
import { HandoffPolicy } from "../../src/engine/handoff-policy.js";
import { STORIES, tell } from "./handoff-table.js";

describe("the hand-over policy", () => {
  test.each(STORIES.map((story) => [story.rule, story] as const))("%s", (_, story) => {
    tell(HandoffPolicy, story);
  });
});
