// A vitest reporter for tables: a line for each test as soon as it has ended, and why it failed or was skipped.
export default class RowReporter {
  onTestCaseResult(test) {
    const { state, note, errors } = test.result();
    const seconds = ((test.diagnostic()?.duration ?? 0) / 1_000).toFixed(1);
    if (state === "passed") console.log(`ok      ${test.name} (${seconds} s)`);
    else if (state === "skipped" && note) console.log(`skipped ${test.name}: ${note}`);
    else if (state === "failed") console.log(`failed  ${test.name} (${seconds} s)\n${describe(errors)}`);
  }

  onTestRunEnd(modules, unhandledErrors) {
    const errors = [...modules.flatMap((module) => module.errors()), ...unhandledErrors];
    if (errors.length > 0) console.log(describe(errors));
  }
}

function describe(errors) {
  return errors
    .map(({ message }) => message)
    .join("\n")
    .replaceAll(/^/gm, "        ");
}
