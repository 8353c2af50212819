/** The presence that clients publish. */
import { clientDescribe, clientEnlist, clientTell } from "../../src/scripts/generated.js";
import { held, later, type Scores, type States, scored, useBench } from "./bench.js";
import { each, scriptTable } from "./table.js";

const CLIENT = "holdfast_client:{a}";
const INDEX = "holdfast_clients";
const bench = await useBench();

const fields = { label: "mail", host: "h1", pid: "17", since: "1700000000000", holds: "[1]", waits: "[2]" };
const named = { fields: Object.keys(fields), values: Object.values(fields) };
const told = (ttl: number): States => ({ [CLIENT]: held(fields, ttl) });
const index = (members: Scores["members"], ttl: number): States => ({ [INDEX]: scored(members, ttl) });

/** Rows of a telling: the fields of the one before go. `beside`: the other keys afterwards. */
const telling = (beside: (ttl: number) => States) =>
  each("what a client tells lasts for its time: %s ms", { 60000: 60_000, 30000: 30_000 }, (ttl) => ({
    given: { [CLIENT]: held({ label: "old", more: "x" }, 90_000) },
    args: { ttl },
    reply: 1,
    after: { ...told(ttl), ...beside(ttl) },
  }));
const enlisting = (beside: States) => ({
  "a client stands in the index for its time; those whose time is over go": {
    given: index({ b: 90_000, c: -1 }, 90_000),
    reply: 1,
    after: { ...beside, ...index({ a: later(60_000), b: 90_000 }, 90_000) },
  },
  "the index lasts as long as the last of its clients": {
    given: index({ b: 9_000 }, 9_000),
    reply: 1,
    after: { ...beside, ...index({ a: later(60_000), b: 9_000 }, 60_000) },
  },
});

scriptTable(bench, clientTell, {
  keys: { client: CLIENT, index: INDEX },
  args: { id: "a", ttl: 60_000, ...named },
  rows: { ...telling((ttl) => index({ a: later(ttl) }, ttl)), ...enlisting(told(60_000)) },
  endless: /^holdfast_client/,
});

scriptTable(bench, clientDescribe, {
  keys: { client: CLIENT },
  args: { ttl: 60_000, ...named },
  rows: telling(() => ({})),
  endless: /^holdfast_client/,
});

scriptTable(bench, clientEnlist, {
  keys: { index: INDEX },
  args: { id: "a", ttl: 60_000 },
  rows: enlisting({}),
  endless: /^holdfast_client/,
});
