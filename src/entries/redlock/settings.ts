/** The settings of redlock, by its names and with its defaults. */

/** Times are milliseconds. */
export interface Settings {
  /**
   * The share of a duration by which `expiration` is earlier, plus 2 ms. Default 0.01; at least 0, and below 0.65. The
   * settings of a single call may raise it.
   */
  readonly driftFactor: number;
  /**
   * With the two below the longest wait for a resource that is locked: `retryCount * (retryDelay + retryJitter)`. Default
   * 10; -1 for ever, 0 for one try.
   */
  readonly retryCount: number;
  /** Default 200. Also the pause before another attempt where Redis gave no answer. */
  readonly retryDelay: number;
  /** Default 100. That pause is so much longer or shorter, at random. */
  readonly retryJitter: number;
  /** `using` extends a lock so long before its `expiration`. Default 500; a duration has to be 100 longer. */
  readonly automaticExtensionThreshold: number;
}

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

const FOR_EVER = -1;
/** With a larger `driftFactor` a LockClient would lose what it renews before each renewal. */
const LARGEST_DRIFT = 0.65;

/**
 * The settings of `given`, else those of `base`.
 * @throws TypeError for what is no number, RangeError for a number that makes no sense
 */
export function checkSettings(given: Partial<Settings> | undefined, base: Settings = DEFAULTS): Settings {
  if (given === undefined) return base;
  if (typeof given !== "object" || given === null) throw new TypeError("redlock: settings must be an object");
  const checked: Record<keyof Settings, number> = { ...base };
  for (const name of Object.keys(DEFAULTS) as (keyof Settings)[]) {
    const value = given[name];
    if (value === undefined) continue;
    if (typeof value !== "number") throw new TypeError(`redlock: ${name} must be a number`);
    if (!(value >= 0) && !(name === "retryCount" && value === FOR_EVER))
      throw new RangeError(`redlock: ${name} must be 0 or more${name === "retryCount" ? ", or -1" : ""}`);
    if (name === "driftFactor" && value >= LARGEST_DRIFT)
      throw new RangeError(`redlock: driftFactor must be below ${LARGEST_DRIFT}`);
    checked[name] = value;
  }
  return checked;
}

/** Milliseconds that a call waits at most. */
export function waitOf({ retryCount, retryDelay, retryJitter }: Settings): number {
  if (retryCount === 0) return 0;
  return retryCount === FOR_EVER
    ? Number.POSITIVE_INFINITY
    : Math.min(retryCount, Number.MAX_SAFE_INTEGER) * (retryDelay + retryJitter);
}

/** Milliseconds before another attempt. */
export function pauseOf({ retryDelay, retryJitter }: Settings): number {
  return Math.max(0, retryDelay + (Math.random() * 2 - 1) * retryJitter);
}
