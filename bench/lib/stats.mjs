// What the bench makes of its measurements.

export const sorted = (values) => Float64Array.from(values).sort();

/** Of sorted values, the one below which this share of them lies. */
export function quantile(values, share) {
  if (!values.length) return Number.NaN;
  const place = (values.length - 1) * share;
  const low = Math.floor(place);
  const high = Math.ceil(place);
  return values[low] + (values[high] - values[low]) * (place - low);
}

export const median = (values) => quantile(sorted(values), 0.5);

export const sum = (values) => values.reduce((total, each) => total + each, 0);

/** Least, median and greatest of what is a number. */
export function summary(values) {
  const all = sorted(values.filter(Number.isFinite));
  return {
    n: all.length,
    min: all.length ? all[0] : Number.NaN,
    med: quantile(all, 0.5),
    max: all.length ? all[all.length - 1] : Number.NaN,
  };
}

/** The shares of which a curve of percentiles is made. */
export const SHARES = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1];

/** A distribution in few numbers: its values at `SHARES`. */
export function curve(values) {
  const all = sorted(values);
  return SHARES.map((share) => quantile(all, share));
}

/** Jain's index of fairness: 1 when all have as much, 1/n when one has all. */
export function jain(values) {
  const squares = sum(values.map((value) => value * value));
  return squares === 0 ? Number.NaN : sum(values) ** 2 / (values.length * squares);
}

/**
 * Returns how `y` grows with `x`: the exponent of y = a · x^exponent by least squares in log-log (0: not at all, 1:
 * linear). It also returns how much of the variance that explains. Undefined with fewer than two points above zero.
 */
export function fitExponent(points) {
  const logs = points.filter(([x, y]) => x > 0 && y > 0).map(([x, y]) => [Math.log(x), Math.log(y)]);
  if (logs.length < 2) return undefined;
  const meanX = sum(logs.map(([x]) => x)) / logs.length;
  const meanY = sum(logs.map(([, y]) => y)) / logs.length;
  const xx = sum(logs.map(([x]) => (x - meanX) ** 2));
  const yy = sum(logs.map(([, y]) => (y - meanY) ** 2));
  const xy = sum(logs.map(([x, y]) => (x - meanX) * (y - meanY)));
  if (xx === 0) return undefined;
  return { exponent: xy / xx, r2: yy === 0 ? 1 : xy ** 2 / (xx * yy), points: logs.length };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
