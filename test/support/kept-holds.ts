/**
 * Some tests take a hold and drop the object, to stand for another process. Garbage collection must not give such a hold
 * back at some random moment. This file is loaded before each test file; a test about garbage calls {@link letGo}.
 */
const { prototype } = FinalizationRegistry;
const { register } = prototype;
const kept: unknown[] = [];

prototype.register = (target) => {
  kept.push(target);
};

/** From here on, registries are told of garbage again, as usual. */
export function letGo(): void {
  prototype.register = register;
}
