/**
 * A row of the contract suite: a sentence of the contract, what is done, and what is seen, on each kind of lock. All rows run
 * in virtual time; `row.real` also on a redis-server. A row has to leave nothing behind, neither in its clients nor on the server.
 *
 * A title is a whole sentence and ends with the key of the contract's sentence in brackets, as of sentences.ts: `[§2 extend-later]`.
 */
import { test } from "vitest";
import type { LockClientOptions } from "../../../src/index.js";
import { KINDS, type Kind, PLAIN, READ } from "./kinds.js";
import type { Place } from "./place.js";
import { expectFree, openReal } from "./real.js";
import { expectNothingLeft, openVirtual, type VirtualPlace } from "./virtual.js";

export interface RowOptions {
  /** Default: all kinds. */
  readonly kinds?: readonly Kind[];
  /** The options of the place's clients. */
  readonly client?: LockClientOptions;
}

type Body<P> = (place: P) => unknown;
type Define<P> = {
  (title: string, body: Body<P>): void;
  (title: string, options: RowOptions, body: Body<P>): void;
};

/** The kinds that a row is tried on with a real server: the others' scripts are proven by tables, fidelity, simulation and fleet. */
const REAL_KINDS = [PLAIN, READ];

/** Where rows run: everywhere, or on real servers only. */
const isVirtual = process.env.HOLDFAST_PLACES !== "real";

function define<P>(run: (title: string, options: RowOptions, body: Body<P>) => void): Define<P> {
  return (title: string, first: RowOptions | Body<P>, second?: Body<P>) => {
    if (second) run(title, first as RowOptions, second);
    else run(title, {}, first as Body<P>);
  };
}

function inVirtualTime(title: string, options: RowOptions, body: Body<VirtualPlace>): void {
  if (!isVirtual) return;
  const { kinds = KINDS, client = {} } = options;
  for (const kind of kinds) {
    test(`${kind.name}: ${title}`, async () => {
      const place = openVirtual(kind, client);
      await body(place);
      await expectNothingLeft(place);
    });
  }
}

function onRedis(title: string, options: RowOptions, body: Body<Place>): void {
  const { kinds = KINDS, client = {} } = options;
  for (const kind of REAL_KINDS.filter((each) => kinds.includes(each))) {
    test(`${kind.name} on redis-server: ${title}`, async () => {
      await using place = await openReal(kind, client);
      await body(place);
      await expectFree(place);
    });
  }
}

export const row: Define<VirtualPlace> & { readonly real: Define<Place> } = Object.assign(
  define(inVirtualTime),
  {
    real: define<Place>((title, options, body) => {
      inVirtualTime(title, options, body);
      onRedis(title, options, body);
    }),
  },
);
