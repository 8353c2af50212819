// Looks things up in results.json.

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

/** Neither a floor nor of this library. */
export const isPeer = (results, name) => !results.floors.includes(name) && !name.startsWith("holdfast");
