// Looks things up in results.json.
import { median } from "./stats.mjs";

/** The entry of a scenario whose variant begins with this text; the first one if there is none. */
export function entryOf(results, id, variant = "") {
  return results.scenarios.find((entry) => entry.id === id && entry.variant.startsWith(variant));
}

export const figureOf = (entry, peer, key) => entry?.peers[peer]?.metrics[key];

/** The median of a figure, or undefined. */
export function medianOf(results, [id, variant, key], peer = "holdfast") {
  const med = figureOf(entryOf(results, id, variant), peer, key)?.med;
  return Number.isFinite(med) ? med : undefined;
}

/** The median of its ratios to the floor, or undefined. */
export function ratioOf(results, [id, variant, key], peer = "holdfast") {
  const med = figureOf(entryOf(results, id, variant), peer, key)?.ratio?.med;
  return Number.isFinite(med) ? med : undefined;
}

/** The median of its ratios to another floor than that of the scenario, of the same repeat. */
export function ratioBeside(results, [id, variant, key], floor, peer = "holdfast") {
  const entry = entryOf(results, id, variant);
  const [ours, theirs] = [peer, floor].map((name) => figureOf(entry, name, key)?.samples ?? []);
  // A repeat that failed is nobody's: which ones are of the same time is not known then.
  return ours.length > 0 && ours.length === theirs.length
    ? median(ours.map((value, i) => value / theirs[i]))
    : undefined;
}

/** Neither a floor nor of this library. */
export const isPeer = (results, name) => !results.floors.includes(name) && !name.startsWith("holdfast");
