/** The connections that clients of the library make for themselves, of the one that they are given. */

interface Duplicable {
  duplicate(...options: never[]): unknown;
}

/**
 * The connections that are made of this one from now on, that for commands first. `change`: called with each as it is
 * made.
 */
export function ownConnections<R extends Duplicable>(redis: R, change: (own: R) => void = () => {}): R[] {
  const made: R[] = [];
  const duplicate = redis.duplicate.bind(redis) as (...options: unknown[]) => R;
  redis.duplicate = (...options: unknown[]) => {
    const own = duplicate(...options);
    made.push(own);
    change(own);
    return own;
  };
  return made;
}
