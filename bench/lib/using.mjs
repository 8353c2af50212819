/** Of a `using(key, ttl, routine)`: takes, and keeps the routine waiting until `drop` lets it end. */
export const hold = (using) =>
  new Promise((resolve, reject) => {
    let end;
    const until = new Promise((ended) => {
      end = ended;
    });
    const done = using(() => {
      resolve({ end, done });
      return until;
    });
    done.catch(reject);
  });

export function drop({ end, done }) {
  end();
  return done;
}
