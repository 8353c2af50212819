/** Of a `using(key, ttl, routine)`: takes, and keeps the routine waiting until `drop` lets it end. `signal`: the routine's. */
export const hold = (using) =>
  new Promise((resolve, reject) => {
    let end;
    const until = new Promise((ended) => {
      end = ended;
    });
    const done = using((signal) => {
      resolve({ end, done, signal });
      return until;
    });
    done.catch(reject);
  });

export function drop({ end, done }) {
  end();
  return done;
}
