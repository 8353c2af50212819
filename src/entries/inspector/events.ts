/** Sends the changes as server-sent events. */
import type { Feed } from "./feed.js";
import { respond, text } from "./responses.js";

/** The most streams at a time; more are refused. */
const MOST = 100;
/** Bytes that may wait to be read before a viewer counts as slow. */
const AHEAD = 1 << 20;

export function openEvents(feed: Feed, request: Request): Response {
  if (feed.viewers >= MOST) return text(503, "Too many viewers.", { "retry-after": "10" });
  let closed = () => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        let open = true;
        const end = () => {
          if (open) controller.close();
          open = false;
        };
        const stop = feed.watch({
          get ready() {
            return (controller.desiredSize ?? 0) > 0;
          },
          send: (message) => controller.enqueue(message),
          end,
        });
        const leave = () => {
          stop();
          end();
        };
        closed = () => {
          open = false;
          stop();
        };
        if (request.signal.aborted) leave();
        else request.signal.addEventListener("abort", leave, { once: true });
      },
      cancel: () => closed(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: AHEAD }),
  );
  return respond(200, body, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  });
}
