// The nodes of parsed Lua code.

/** Fields that hold a name which is declared or is a field of a table, and so is no use of a variable. */
const NAMES_ONLY = {
  MemberExpression: ["identifier"],
  TableKeyString: ["key"],
  LocalStatement: ["variables"],
  FunctionDeclaration: ["parameters"],
  ForNumericStatement: ["variable"],
  ForGenericStatement: ["variables"],
};

/** Every node below `node` but names that are only declared; `enters` says which nodes to look into. */
export function* walk(node, enters = (_node) => true) {
  if (Array.isArray(node)) {
    for (const child of node) yield* walk(child, enters);
  } else if (typeof node?.type === "string") {
    yield node;
    if (!enters(node)) return;
    for (const [field, child] of Object.entries(node)) {
      const isLocalName = node.type === "FunctionDeclaration" && field === "identifier" && node.isLocal;
      if (!isLocalName && !NAMES_ONLY[node.type]?.includes(field)) yield* walk(child, enters);
    }
  }
}
