/** Takes the place of nanoid in simulations, whose ids have to be the same each time. */
export function customAlphabet(alphabet: string, size: number): () => string {
  return () =>
    Array.from({ length: size }, () => alphabet[Math.floor(Math.random() * alphabet.length)]).join("");
}
