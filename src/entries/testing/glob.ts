/** Patterns as Redis knows them: `*`, `?`, `[a-c]`, `[^a]`, and `\` before what stands for itself. */

export function matchesGlob(pattern: string, text: string): boolean {
  return toRegExp(pattern).test(text);
}

function toRegExp(pattern: string): RegExp {
  let source = "";
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i] as string;
    if (char === "*") source += ".*";
    else if (char === "?") source += ".";
    else if (char === "\\" && i + 1 < pattern.length) source += literal(pattern[++i] as string);
    else if (char === "[") {
      const { text, end } = classAt(pattern, i + 1);
      source += text;
      i = end;
    } else source += literal(char);
  }
  return new RegExp(`^${source}$`, "s");
}

/**
 * A class, from behind its bracket to the one that closes it, or to the end of the pattern. The character behind the
 * `-` of a range is its end, even a bracket or a backslash. An escaped character stands for itself and begins no range.
 */
function classAt(pattern: string, start: number): { readonly text: string; readonly end: number } {
  const not = pattern[start] === "^" ? "^" : "";
  let set = "";
  let i = start + not.length;
  while (i < pattern.length && pattern[i] !== "]") {
    const [one = "", next, last] = pattern.slice(i, i + 3);
    if (one === "\\" && next !== undefined) {
      set += literal(next);
      i += 2;
    } else if (next === "-" && last !== undefined) {
      set += [one, last].sort().map(literal).join("-");
      i += 3;
    } else {
      set += literal(one);
      i++;
    }
  }
  // An empty class matches nothing, and a negated one everything.
  return { text: `[${not}${set}]`, end: i };
}

function literal(char: string): string {
  return /[\w ]/.test(char) ? char : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
