// How cost grows: an exponent for each figure of a scenario whose variants are sizes.
import { fitExponent } from "./stats.mjs";

/** `{ id, by, peer, figure, label, exponent, r2 }` of each, from the medians. */
export function fitsOf(scenarios, entries) {
  return scenarios
    .filter(({ grows }) => grows)
    .flatMap(({ id, grows: { by, figures }, metrics }) => {
      const mine = entries.filter((entry) => entry.id === id && entry.x !== undefined);
      const peers = [...new Set(mine.flatMap((entry) => Object.keys(entry.peers)))];
      const label = (figure) => metrics.find(({ key }) => key === figure).label;
      return peers.flatMap((peer) =>
        figures.flatMap((figure) => {
          const points = mine.map((entry) => [entry.x, entry.peers[peer]?.metrics[figure]?.med]);
          const fit = fitExponent(points.filter(([, y]) => Number.isFinite(y)));
          return fit ? [{ id, by, peer, figure, label: label(figure), ...fit }] : [];
        }),
      );
    });
}

export const describe = ({ by, peer, label, exponent, r2, points }) =>
  `${label} ~ ${by}^${exponent.toFixed(2)}   ${peer} (${points} sizes, r² ${r2.toFixed(2)})`;
