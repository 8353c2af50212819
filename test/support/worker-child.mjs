/**
 * The child's side of worker.ts, in plain JavaScript because Node 20 runs no TypeScript. It answers the requests that
 * the test sends over the process's IPC channel, and exits when the test has gone.
 */

/**
 * @callback Emit Sends the test a message that is no reply.
 * @param {string} type
 * @param {unknown} [payload]
 * @returns {void}
 */

/**
 * @callback Handler
 * @param {any} payload
 * @param {Emit} emit
 * @returns {unknown} The reply, or a promise of it. `worker.request` rejects with what the handler throws.
 */

/**
 * Answers each request by the handler of its type, several at a time. Call it once, when everything is ready:
 * `startWorker` resolves then.
 *
 * @param {Record<string, Handler>} handlers
 * @returns {void}
 */
export function serve(handlers) {
  if (process.send === undefined) throw new Error("serve() needs a parent: start this file by startWorker()");
  process.on("disconnect", () => process.exit());
  process.on("message", (message) => void answer(handlers, /** @type {any} */ (message)));
  send({ kind: "ready" });
}

/** @type {Emit} */
export function emit(type, payload) {
  send({ kind: "event", type, payload });
}

/**
 * @param {Record<string, Handler>} handlers
 * @param {{ id: number, type: string, payload: unknown }} request
 */
async function answer(handlers, { id, type, payload }) {
  try {
    if (!Object.hasOwn(handlers, type)) throw new TypeError(`this worker has no handler "${type}"`);
    send({ kind: "reply", id, value: await handlers[type](payload, emit) });
  } catch (error) {
    send({ kind: "failure", id, error: describe(error) });
  }
}

/** @param {object} message */
function send(message) {
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/**
 * An error as data: structured cloning would keep its message but lose its class, its `code` and its other fields.
 *
 * @param {unknown} error
 */
function describe(error) {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const plain = Object.entries(error).filter(
    ([, value]) => value === null || /^(string|number|boolean|bigint)$/.test(typeof value),
  );
  return { ...Object.fromEntries(plain), name: error.name, message: error.message, stack: error.stack };
}
