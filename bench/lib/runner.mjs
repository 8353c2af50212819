// Runs one variant of a scenario: all who take part, in interleaved repeats, on the same servers.
import { Child } from "./child.mjs";
import { keepAwake, pinClients, pinServers, unpin } from "./pin.mjs";
import { slowDown } from "./slow.mjs";
import { summary } from "./stats.mjs";

/** Whoever fails so often in a variant is left out of the rest of it. */
const ENOUGH_FAILURES = 2;
const AUDIT_MS = 15_000;

const firstLine = (error) =>
  String(error?.message ?? error)
    .trim()
    .split("\n")[0]
    .trim();

/** Processes that are alive, to be killed should the bench end early. */
export const live = new Set();

/** Processes that start at once: each takes a core while it does. */
const STARTING = 4;

/** Runs all of them, so many at a time; rejects with the first failure, once all have ended. */
async function few(acts) {
  const left = [...acts];
  const failures = [];
  const next = async () => {
    for (let act = left.shift(); act; act = left.shift()) await act().catch((error) => failures.push(error));
  };
  await Promise.all(Array.from({ length: STARTING }, next));
  if (failures.length > 0) throw failures[0];
}

class Party {
  children = [];
  samples = [];
  errors = [];
  audit = undefined;

  /** `ways`: where to connect to the servers, in their order. */
  constructor(adapter, scenario, variant, servers, ways) {
    Object.assign(this, { adapter, scenario, variant, servers, ways });
  }

  get meta() {
    return this.adapter.meta;
  }

  get isOut() {
    return this.errors.length >= ENOUGH_FAILURES;
  }

  context(more) {
    const { children, servers, variant, meta, adapter } = this;
    return { children, servers, variant, meta, adapter, ...more };
  }

  async start(pin) {
    const servers = this.ways.map(({ host, port }) => ({ host, port }));
    const config = { servers, ttl: this.variant.ttl };
    const { file: adapter, env } = this.adapter;
    const startOne = async () => {
      const child = await Child.start({ adapter, scenario: this.scenario.file, config, env });
      live.add(child);
      this.children.push(child);
    };
    await few(Array.from({ length: this.variant.procs ?? 1 }, () => startOne));
    const pids = this.children.map((child) => child.process.pid);
    if (pin) await pinClients(pin, pids);
  }

  async warm() {
    if (this.scenario.processless) return;
    await this.servers[0].flush();
    if (this.scenario.warm) await this.scenario.warm(this.context({ sliceMs: 200 }));
    else await this.children[0].call("warm");
  }

  async stop() {
    const children = this.children.splice(0);
    await Promise.all(children.map((child) => child.stop()));
    for (const child of children) live.delete(child);
  }

  async failed(error, when) {
    this.errors.push(`${when}: ${firstLine(error)}`);
    await this.stop();
  }
}

/** Who takes part: the floors, this library, and the peers that can do it and may. */
function participants(scenario, variant, { peers, isFull, isNamed }) {
  const { floors = [], ours = ["holdfast"], peers: canTake = () => true } = { ...scenario, ...variant };
  const isSlow = ({ slow = [] }) => variant.peersInFull || slow.includes(scenario.id);
  return peers.filter(({ meta }) => {
    if (meta.floor)
      return floors.includes(meta.name) && (meta.name === floors[0] || !isNamed || isNamed(meta.name));
    if (meta.isPeer) return (isFull || !isSlow(meta)) && canTake(meta, variant);
    if (meta.external) return meta.as === undefined ? canTake(meta, variant) : ours.includes(meta.as);
    return ours.includes(meta.of ?? meta.name);
  });
}

async function measureOne(party, repeat, options) {
  const { scenario } = party;
  const { sliceMs, pin } = options;
  if (party.children.length === 0 && !scenario.processless) {
    await party.start(pin);
    await party.warm();
  }
  const figures = await scenario.measure(party.context({ sliceMs: sliceMs / (scenario.finer ?? 1), repeat }));
  party.samples.push({ repeat, ...figures });
  if (figures.dirty || scenario.fresh) await party.stop();
}

async function measureAll(parties, options) {
  const { scenario, variant, repeats } = options;
  const count = variant.repeats ?? scenario.repeats ?? repeats * (scenario.finer ?? 1);
  if (!scenario.fresh && !scenario.processless) {
    const starts = parties.map(
      (party) => () => party.start(options.pin).catch((error) => party.failed(error, "start")),
    );
    // Those of one process start together, and warm up one after the other.
    if ((variant.procs ?? 1) > 1) for (const start of starts) await start();
    else await few(starts);
    for (const party of parties) {
      if (party.children.length > 0) await party.warm().catch((error) => party.failed(error, "warm-up"));
    }
  }
  for (let repeat = 0; repeat < count; repeat++) {
    const first = repeat % parties.length;
    // Nobody always goes first.
    for (const party of [...parties.slice(first), ...parties.slice(0, first)]) {
      if (party.isOut) continue;
      await measureOne(party, repeat, options).catch((error) => party.failed(error, `repeat ${repeat}`));
    }
  }
}

async function auditAll(parties, servers) {
  for (const party of parties) {
    if (party.children.length === 0) continue;
    await servers[0].flush();
    try {
      party.audit = await party.children[0].call("audit", {}, AUDIT_MS);
    } catch (error) {
      party.errors.push(`audit: ${firstLine(error)}`);
    }
  }
}

/** Of each metric the median and the extremes, the samples, and the ratios to the floor of the same repeat. */
function judged(party, floor, metrics) {
  const result = {};
  for (const { key, ratio } of metrics) {
    const values = party.samples.map((sample) => sample[key]);
    result[key] = { ...summary(values), samples: values };
    if (!ratio || !floor || floor === party) continue;
    const ratios = party.samples.map((sample) => {
      const beside = floor.samples.find(({ repeat }) => repeat === sample.repeat);
      return sample[key] / (beside?.[key] ?? Number.NaN);
    });
    result[key].ratio = summary(ratios);
  }
  const sum = (of) => party.samples.reduce((total, sample) => total + (of(sample) ?? 0), 0);
  const notes = ["curve", "idleCommands", "perProcess", "note"].filter(
    (key) => party.samples[0]?.[key] !== undefined,
  );
  return {
    repeats: party.samples.length,
    metrics: result,
    ...Object.fromEntries(notes.map((key) => [key, party.samples.map((sample) => sample[key])])),
    violations: sum(({ violations }) => violations) + (party.audit?.violations ?? 0),
    errors: party.errors,
  };
}

export async function runVariant(scenario, variant, options) {
  const begun = performance.now();
  const servers = options.servers.slice(0, variant.servers ?? 1);
  // The last one is slow if the variant says so.
  const slow = variant.slowMs === undefined ? undefined : await slowDown(servers.at(-1), variant.slowMs);
  const ways = slow ? [...servers.slice(0, -1), slow] : servers;
  const metrics = variant.metrics ?? scenario.metrics;
  const parties = participants(scenario, variant, options).map(
    (adapter) => new Party(adapter, scenario, variant, servers, ways),
  );
  const floorName = scenario.ratioTo ?? (variant.floors ?? scenario.floors ?? [])[0];
  const pin = options.pin ? scenario.pin : undefined;
  const pids = servers.map(({ pid }) => pid);
  let letSleep;
  if (pin) {
    await pinServers(pids);
    letSleep = keepAwake(pin);
  }
  try {
    if (parties.length > 0) await measureAll(parties, { ...options, scenario, variant, pin });
  } finally {
    letSleep?.();
    if (pin) await unpin(pids);
  }
  if (scenario.audit) await auditAll(parties, servers);
  await Promise.all(parties.map((party) => party.stop()));
  slow?.stop();
  const floor = parties.find(({ meta }) => meta.name === floorName);
  return {
    id: scenario.id,
    title: scenario.title,
    variant: variant.label,
    x: variant.x,
    floor: floorName,
    metrics,
    peers: Object.fromEntries(parties.map((party) => [party.meta.name, judged(party, floor, metrics)])),
    tookS: (performance.now() - begun) / 1_000,
  };
}
