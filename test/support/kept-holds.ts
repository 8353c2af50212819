/**
 * Some tests take a hold and drop the object, to stand for another process. Garbage collection must not give such a hold
 * back at some random moment. This file is loaded before each test file; a test about garbage calls {@link letGo}.
 */
const { prototype } = FinalizationRegistry;
const kept: unknown[] = [];

/** The platform's own method, where a file before this one in the same process has left it. */
const PLATFORM = Symbol.for("holdfast-tests-register");
const known = prototype as typeof prototype & { [PLATFORM]?: typeof prototype.register };
known[PLATFORM] ??= prototype.register;
const register = known[PLATFORM];

prototype.register = (target) => {
  kept.push(target);
};

/** From here on, registries are told of garbage again, as usual. */
export function letGo(): void {
  prototype.register = register;
}
