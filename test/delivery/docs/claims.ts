/**
 * Turns what a comment in a block claims into a check:
 *
 *     await lock.isLocked(); // → true
 *     await lock.lock({ wait: 100 }); // rejects WAIT_TIMEOUT
 */
import ts from "typescript";

const CLAIM = /^\/\/ (→|rejects) (.+)$/;

interface Edit {
  readonly at: number;
  readonly text: string;
}

/** The code with checks of its claims; every line keeps its number. */
export function withChecks(code: string, firstLine: number): string {
  const source = ts.createSourceFile("block.ts", code, ts.ScriptTarget.ESNext, true);
  const edits: Edit[] = [];
  const seen = new Set<number>();
  const visit = (node: ts.Node): void => {
    const claim = claimBehind(node, code);
    const claimed = claim && claimant(node);
    if (claim && claimed) {
      seen.add(claim.pos);
      edits.push(...check(claimed, claim, source, firstLine));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  for (const { index } of code.matchAll(/\/\/ (→|rejects) /g)) {
    if (seen.has(index)) continue;
    const line = source.getLineAndCharacterOfPosition(index).line + firstLine;
    throw new Error(`line ${line}: this claim stands behind nothing that can be checked`);
  }
  let result = code;
  for (const { at, text } of edits.sort((a, b) => b.at - a.at))
    result = result.slice(0, at) + text + result.slice(at);
  return result;
}

interface Claim {
  readonly pos: number;
  readonly word: string;
  readonly text: string;
}

function claimBehind(node: ts.Node, code: string): Claim | undefined {
  if (!ts.isExpressionStatement(node) && !ts.isVariableStatement(node)) return undefined;
  const comment = ts.getTrailingCommentRanges(code, node.end)?.[0];
  const match = comment && CLAIM.exec(code.slice(comment.pos, comment.end));
  return match ? { pos: comment.pos, word: match[1] as string, text: match[2] as string } : undefined;
}

/** The expression that a claim after this statement is about. */
function claimant(node: ts.Node): ts.Expression | undefined {
  if (ts.isExpressionStatement(node)) return node.expression;
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.at(-1)?.initializer;
  return undefined;
}

function check(
  expression: ts.Expression,
  { word, text }: Claim,
  source: ts.SourceFile,
  firstLine: number,
): Edit[] {
  const start = expression.getStart(source);
  const line = source.getLineAndCharacterOfPosition(start).line + firstLine;
  const claim = `${JSON.stringify(text)}, ${line}`;
  return word === "→"
    ? [
        { at: start, text: "$gives((" },
        { at: expression.end, text: `), ${claim})` },
      ]
    : [
        { at: start, text: "await $rejects(async () => (" },
        { at: expression.end, text: `), ${claim})` },
      ];
}
