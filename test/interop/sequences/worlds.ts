/**
 * Two Redis servers. In the mixed world some actors use this library and some use Redisson; in the other world all use
 * Redisson. Before each call the other world gets the state of the mixed one. So every call starts from the same state
 * on both sides, and the states after it can be compared.
 */
import type { Redis } from "ioredis";
import type { LockClient } from "../../../src/index.js";
import { until } from "../../support/index.js";
import type { JavaClient, JavaThread } from "../java.js";
import { NodeParty } from "../party.js";
import { Actor, type Call, type Kind, type Outcome } from "./calls.js";
import type { Ear } from "./ear.js";
import { readState, type State, writeState } from "./state.js";

export const ACTORS = ["node1", "node2", "java1", "java2"] as const;
export type ActorName = (typeof ACTORS)[number];

export interface Step {
  readonly actor: ActorName;
  readonly call: Call;
}

/** The result of a step in one of the worlds. */
export interface Result {
  readonly outcome: Outcome;
  readonly state: State;
  /** The published messages as `channel: payload`, in order. */
  readonly messages: readonly string[];
  /** Epoch ms: the step took place between the two. */
  readonly from: number;
  readonly to: number;
}

const PERMIT_ID = /^[0-9a-f]{32}$/;
const NOBODYS = "0123456789abcdef".repeat(2);

/** One server with its actors, and the names of their owners and permits on it. */
class World {
  readonly #redis: Redis;
  readonly #ear: Ear;
  readonly #name: string;
  readonly #actors: ReadonlyMap<ActorName, Actor>;
  /** Replaces the names on the server by labels that are the same in both worlds. */
  readonly #labels: readonly (readonly [pattern: RegExp, label: string])[];
  readonly #owners: ReadonlyMap<string, string>;
  readonly #permits = new Map<string, string>();
  /** Calls that wait in the queue of a fair lock. */
  readonly #waiting = new Map<ActorName, Promise<void>>();

  constructor(
    { redis, ear }: Site,
    name: string,
    actors: ReadonlyMap<ActorName, Actor>,
    owners: ReadonlyMap<ActorName, string | RegExp>,
  ) {
    this.#redis = redis;
    this.#ear = ear;
    this.#name = name;
    this.#actors = actors;
    this.#labels = [...owners].map(([actor, owner]) => [patternOf(owner), `<${actor}>`] as const);
    this.#owners = new Map([...owners].map(([actor, owner]) => [`<${actor}>`, String(owner)]));
  }

  actor(name: ActorName): Actor {
    const actor = this.#actors.get(name);
    if (!actor) throw new Error(`nobody is called ${name}`);
    return actor;
  }

  /** Makes a call. A permit that it is granted is called `newPermit` from then on. */
  async perform({ actor, call }: Step, newPermit: string): Promise<Result> {
    await this.#ear.heard(this.#name);
    const from = Date.now();
    const { permitId } = call;
    const mine =
      permitId === undefined ? call : { ...call, permitId: this.#permits.get(permitId) ?? NOBODYS };
    const outcome = await (call.verb === "lock" ? this.#begin(actor, mine) : this.actor(actor).perform(mine));
    // This library answers when the wait is over, and leaves the queue at the same moment.
    if (outcome === false && (call.wait ?? 0) > 0) {
      await until(`${actor} has left`, async () => !(await this.#line()).includes(`<${actor}>`));
    }
    // What this library sends in the background has been sent, and a later command is answered later.
    const { party } = this.actor(actor);
    if (party instanceof NodeParty) await party.client.inspect(this.#name);
    await this.#handOver();
    const to = Date.now() + 1;
    const isPermit = typeof outcome === "string" && PERMIT_ID.test(outcome);
    if (isPermit) this.#permits.set(newPermit, outcome);
    const state = await this.read();
    const heard = await this.#ear.heard(this.#name);
    const messages = heard.map(({ channel, payload }) => `${this.#toLabels(channel)}: ${payload}`);
    return { outcome: isPermit ? newPermit : outcome, from, to, state, messages };
  }

  isWaiting(actor: ActorName): boolean {
    return this.#waiting.has(actor);
  }

  /** Serves all waiting calls. */
  async end(): Promise<void> {
    while (this.#waiting.size > 0) {
      const waiting = ACTORS.find((actor) => !this.isWaiting(actor)) ?? "java1";
      await this.actor(waiting).perform({ verb: "forceUnlock" });
      await this.#handOver();
    }
  }

  /** Starts a call that may wait; resolves when it is granted, or is in the queue. */
  async #begin(actor: ActorName, call: Call): Promise<Outcome> {
    let isGranted = false;
    const granted = this.actor(actor)
      .perform(call)
      .then(() => {
        isGranted = true;
        this.#waiting.delete(actor);
      });
    this.#waiting.set(actor, granted);
    await until(
      `${actor} is served or stands in line`,
      async () => isGranted || (await this.#line()).includes(`<${actor}>`),
    );
    return isGranted ? "granted" : "waiting";
  }

  /** Resolves when the first waiter in the queue has taken a lock that is free. */
  async #handOver(): Promise<void> {
    if (this.#waiting.size === 0) return;
    await until("the first in line has the lock", async () => {
      const owners = Object.keys((await this.read())[this.#name]?.value ?? {});
      await Promise.all(
        ACTORS.filter((actor) => owners.includes(`<${actor}>`)).map((actor) => this.#waiting.get(actor)),
      );
      return owners.length > 0 || (await this.#line()).length === 0;
    });
  }

  async #line(): Promise<readonly string[]> {
    return ((await this.read())[`redisson_lock_queue:{${this.#name}}`]?.value ?? []) as string[];
  }

  /** Reads the state, with labels. */
  read(): Promise<State> {
    return readState(this.#redis, this.#name, (text) => this.#toLabels(text));
  }

  write(state: State): Promise<void> {
    return writeState(this.#redis, this.#name, state, (text) => this.#fromLabels(text));
  }

  #toLabels(text: string): string {
    for (const [label, id] of this.#permits) if (text === bytesOf(id)) return label;
    return this.#labels.reduce((each, [pattern, label]) => each.replaceAll(pattern, label), text);
  }

  #fromLabels(text: string): string {
    const permit = this.#permits.get(text);
    if (permit !== undefined) return bytesOf(permit);
    return [...this.#owners].reduce((each, [label, owner]) => each.replaceAll(label, owner), text);
  }
}

/** Matches every owner of a client of this library, which makes a new one for each outermost acquisition. */
function ownersOf(clientId: string): RegExp {
  return new RegExp(`${clientId}:\\d+`, "g");
}

function patternOf(owner: string | RegExp): RegExp {
  return typeof owner === "string" ? new RegExp(`${owner}(?!\\d)`, "g") : owner;
}

/** A permit's id as Redisson writes it: the bytes of its hex digits. */
function bytesOf(hex: string): string {
  return Buffer.from(hex, "hex").toString("latin1");
}

/** A server, and an ear for its messages. */
export interface Site {
  readonly redis: Redis;
  readonly ear: Ear;
}

export interface NodeClient {
  readonly client: LockClient;
  readonly id: string;
}

/** The parts of both worlds; one set serves any number of sequences, each on its own name. */
export interface Cast {
  readonly mixed: Site;
  readonly redisson: Site;
  /** On the mixed server: a client for each actor, so that the new owners of the two can be distinguished. */
  readonly nodes: readonly [NodeClient, NodeClient];
  readonly java: JavaClient;
  /** On the other server. */
  readonly javaAlone: JavaClient;
}

export interface Worlds {
  readonly mixed: World;
  readonly redisson: World;
  readonly nodes: ReadonlyMap<ActorName, Actor<NodeParty>>;
}

export async function openWorlds(cast: Cast, kind: Kind, name: string): Promise<Worlds> {
  const [node1, node2] = cast.nodes;
  const asNode = ({ client }: NodeClient) =>
    new Actor(new NodeParty(client, async () => new Map()), kind, name);
  const nodes = new Map<ActorName, Actor<NodeParty>>([
    ["node1", asNode(node1)],
    ["node2", asNode(node2)],
  ]);
  const [java1, java2] = await Promise.all([cast.java.thread("java1"), cast.java.thread("java2")]);
  const alone = await Promise.all(ACTORS.map((actor) => cast.javaAlone.thread(actor)));
  const asJava = (thread: JavaThread) => new Actor(thread, kind, name);
  const mixed = new World(
    cast.mixed,
    name,
    new Map<ActorName, Actor>([...nodes, ["java1", asJava(java1)], ["java2", asJava(java2)]]),
    new Map<ActorName, string | RegExp>([
      ["node1", ownersOf(node1.id)],
      ["node2", ownersOf(node2.id)],
      ["java1", java1.owner],
      ["java2", java2.owner],
    ]),
  );
  const redisson = new World(
    cast.redisson,
    name,
    new Map(ACTORS.map((actor, i) => [actor, asJava(alone[i] as JavaThread)])),
    new Map(ACTORS.map((actor, i) => [actor, (alone[i] as JavaThread).owner])),
  );
  return { mixed, redisson, nodes };
}
