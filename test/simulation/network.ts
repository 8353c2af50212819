/**
 * A network that one sequence of random numbers decides. The bytes of one connection arrive in order; those of different
 * connections overtake each other. Bytes of a dropped connection may arrive much later.
 */
import { type Connection, Link, type Wire } from "../../src/entries/testing/link.js";
import type { MemoryServer } from "../../src/entries/testing/memory-server.js";
import type { Random } from "../support/random.js";
import type { Weather } from "./schedule.js";
import type { Machine, World } from "./world.js";

/** Milliseconds after which ioredis first tries to connect again. */
const RECONNECT = 50;
/** Milliseconds by which the last bytes of a lost connection may be late. */
const LATEST = 1_500;

interface Segment {
  at: number;
  cancel: () => void;
  readonly arrive: () => void;
}

/** All connections of one client to one server. */
export class ClientNetwork {
  readonly link: Link;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #random: Random;
  readonly #weather: Weather;
  /** The present wire of each connection. */
  readonly #wires = new Map<Connection, SimulatedWire>();
  #cutUntil = 0;
  /**
   * How often the server has gone. Its sockets went too, so its next process reads nothing that was sent to this one.
   */
  #lives = 0;

  constructor(world: World, server: MemoryServer, machine: Machine, random: Random, weather: Weather) {
    this.#world = world;
    this.#machine = machine;
    this.#random = random;
    this.#weather = weather;
    this.link = new Link(server, (connection) => {
      const wire = new SimulatedWire(world, this);
      this.#wires.set(connection, wire);
      return wire;
    });
  }

  /** Whether bytes that are sent now can arrive. */
  get isReachable(): boolean {
    return this.link.isUp && this.#world.now >= this.#cutUntil;
  }

  /** Milliseconds until bytes that are sent now arrive. */
  delay(): number {
    const { least, most, late, latest } = this.#weather;
    const span = this.#random.chance(late) ? latest : most;
    return Math.max(0, this.#cutUntil - this.#world.now) + least + this.#random.next() * (span - least);
  }

  /** Cuts the network for so long; after that TCP sends the bytes again. */
  cut(ms: number): void {
    this.#cutUntil = Math.max(this.#cutUntil, this.#world.now + ms);
  }

  /** Until when the network is cut: bytes that would arrive before arrive then. */
  get cutUntil(): number {
    return this.#cutUntil;
  }

  heal(): void {
    this.#cutUntil = 0;
  }

  /** Drops the connections that `which` picks by their number; they are made again. */
  drop(which: (index: number) => boolean): void {
    const dropped = [...this.link.connections].filter((_, index) => which(index));
    for (const connection of dropped) {
      this.#wires.get(connection)?.close();
      this.#machine.receive(() => {
        if (!this.link.connections.has(connection)) return;
        connection.lose();
        this.#machine.clock.after(RECONNECT, () => {
          if (connection.status === "reconnecting") connection.open();
        });
      });
    }
  }

  /** The server goes: all connections are dropped, and no new one can be made. */
  lose(): void {
    for (const wire of this.#wires.values()) wire.close();
    this.#lives++;
    this.#machine.receive(() => this.link.cut());
  }

  /** The server is back; each client finds that at another time. */
  find(): void {
    const life = this.#lives;
    this.#machine.clock.after(this.#random.next() * 4 * RECONNECT, () => {
      if (life === this.#lives) this.link.mend();
    });
  }

  receive(callback: () => void): void {
    this.#machine.receive(callback);
  }

  /** When a connection is lost, the first part of the bytes on their way arrives, in time or later. */
  loseBytes(segments: readonly Segment[]): void {
    const kept = this.#random.below(segments.length + 1);
    const late = this.#random.chance(0.5) ? this.#random.next() * LATEST : 0;
    const life = this.#lives;
    for (const [i, { at, cancel, arrive }] of segments.entries()) {
      cancel();
      if (i < kept) this.#world.at(at + late, () => life === this.#lives && arrive());
    }
  }
}

class SimulatedWire implements Wire {
  readonly #world: World;
  readonly #network: ClientNetwork;
  /** The bytes on their way to the server. */
  readonly #segments = new Set<Segment>();
  #isOpen = true;
  /** When the last bytes of each direction arrive. */
  #atServer = 0;
  #atClient = 0;

  constructor(world: World, network: ClientNetwork) {
    this.#world = world;
    this.#network = network;
  }

  toServer(arrive: () => void): void {
    if (!this.#isOpen) return;
    this.#atServer = Math.max(this.#atServer, this.#world.now + this.#network.delay());
    this.#travel({ at: this.#atServer, cancel: () => {}, arrive });
  }

  toClient(arrive: () => void): void {
    if (!this.#isOpen) return;
    this.#atClient = Math.max(this.#atClient, this.#world.now + this.#network.delay());
    this.#world.at(this.#atClient, () => this.#arrive(arrive));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#network.loseBytes([...this.#segments]);
    this.#segments.clear();
  }

  #travel(segment: Segment): void {
    this.#segments.add(segment);
    segment.cancel = this.#world.at(segment.at, () => {
      const { cutUntil } = this.#network;
      this.#segments.delete(segment);
      if (cutUntil <= this.#world.now) return segment.arrive();
      segment.at = cutUntil;
      this.#travel(segment);
    });
  }

  #arrive(arrive: () => void): void {
    const { cutUntil } = this.#network;
    if (!this.#isOpen) return;
    if (cutUntil > this.#world.now) this.#world.at(cutUntil, () => this.#arrive(arrive));
    else this.#network.receive(() => this.#isOpen && arrive());
  }
}
