/** MultiLocks in virtual time, whose members lie on two servers and belong to a client for each. */
import { type Lock, MultiLock } from "../../../src/index.js";
import {
  type Kind,
  type Party,
  PLAIN,
  type RowOptions,
  row,
  type VirtualPlace,
} from "../../support/place/index.js";

/** Two servers; rows make their groups themselves. */
const APART: Kind = { ...PLAIN, name: "MultiLock", kind: "multi", servers: 2 };

export interface Apart extends VirtualPlace {
  /** The lock of a word such as "b1": its name is "b", and it is on server 1. */
  of(party: Party, word: string, kind?: Kind): Lock;
  /** A group of plain locks of the first party. */
  group(...words: readonly string[]): MultiLock;
  /** The words of the locks that somebody has. */
  held(): string[];
}

function apart(place: VirtualPlace): Apart {
  const of = (party: Party, word: string, kind: Kind = PLAIN) =>
    kind.make([party.clients[Number(word.at(-1))] ?? party.client], word.slice(0, -1));
  return {
    ...place,
    of,
    group: (...words) => new MultiLock(...words.map((word) => of(place.a, word))),
    held: () =>
      place.servers
        .flatMap((server, i) =>
          server
            .names()
            .filter((name) => !name.includes(":"))
            .map((name) => `${name}${i}`),
        )
        .sort(),
  };
}

type Body = (place: Apart) => unknown;

export function multiRow(title: string, body: Body, client: RowOptions["client"] = {}): void {
  row(title, { kinds: [APART], client }, (place) => body(apart(place)));
}
