/** The timers and clocks that Vitest can replace. */
import { vi } from "vitest";

/** Fakes all of them except `nextTick`. */
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
