/** Replaces nanoid in simulations, whose ids must be the same each time. */
export function customAlphabet(alphabet: string, size: number): () => string {
  return () =>
    Array.from({ length: size }, () => alphabet[Math.floor(Math.random() * alphabet.length)]).join("");
}
