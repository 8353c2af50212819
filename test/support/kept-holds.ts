/**
 * Tests take holds that nobody keeps, to stand for somebody else's: these must not be given back whenever the garbage happens
 * to be collected. Loaded before each test file; one that is about garbage calls {@link letGo}.
 */
const { prototype } = FinalizationRegistry;
const { register } = prototype;
const kept: unknown[] = [];

prototype.register = (target) => {
  kept.push(target);
};

/** From here on what is garbage is told to registries, as ever. */
export function letGo(): void {
  prototype.register = register;
}
