/** Tests that each get a place of their own: its set-up and its final check are written once. */
import { test } from "vitest";

/** Vitest's `test`, whose function gets a place. */
export interface TestIn<P, O = never> {
  (title: string, body: (place: P) => unknown): void;
  /** The same, in a place that is opened with these options. */
  with(options: O): TestIn<P, O>;
}

/** Runs the body of a test, with what comes before and after it. */
export type Around<P> = (place: P, body: () => unknown) => unknown;

export function testIn<P, O extends object>(
  open: (options?: O) => P | Promise<P>,
  around: Around<P>,
): TestIn<P, O> {
  const inPlace = async (body: (place: P) => unknown) => {
    const place = await open();
    await around(place, () => body(place));
  };
  return Object.assign((title: string, body: (place: P) => unknown) => test(title, () => inPlace(body)), {
    with: (options: O) => testIn((more?: O) => open({ ...options, ...more }), around),
  });
}
