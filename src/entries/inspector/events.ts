/** Sends the changes as server-sent events. */
import type { Feed, Viewer } from "./feed.js";
import { respond, text } from "./responses.js";

/** The most streams at a time; more are refused. */
const MOST = 100;
/** Bytes that may wait to be read before a viewer counts as slow. */
const AHEAD = 1 << 20;

export function openEvents(feed: Feed, { signal }: Request): Response {
  if (feed.viewers >= MOST) return text(503, "Too many viewers.", { "retry-after": "10" });
  let viewer: Viewer;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        viewer = controller;
        feed.watch(viewer);
        const end = () => feed.end(viewer);
        if (signal.aborted) end();
        else signal.addEventListener("abort", end, { once: true });
      },
      cancel: () => void feed.leave(viewer),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: AHEAD }),
  );
  return respond(200, body, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
  });
}
