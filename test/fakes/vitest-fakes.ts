/** What Vitest can replace of the timers and clocks. */
import { vi } from "vitest";

/** All but `nextTick`. */
export function fakeEverything(): void {
  vi.useFakeTimers({
    toFake: [
      "setTimeout",
      "clearTimeout",
      "setInterval",
      "clearInterval",
      "setImmediate",
      "clearImmediate",
      "queueMicrotask",
      "performance",
      "Date",
    ],
  });
}
