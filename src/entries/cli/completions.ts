/** `holdfast completions`: what a shell needs to complete commands and options. */
import { type Command, EXIT } from "./command.js";
import { COMMON } from "./parser.js";

const SHELLS = ["bash", "zsh", "fish"] as const;

export function completionsFor(commands: () => readonly Command[]): Command {
  return {
    name: "completions",
    usage: `<${SHELLS.join("|")}>`,
    summary: "prints a script for the shell, such as: source <(holdfast completions bash)",
    words: { least: 1, most: 1 },
    act: ({ words: [shell], terminal }) => {
      const known = SHELLS.find((each) => each === shell);
      if (known === undefined) {
        terminal.tell(`there are completions for ${SHELLS.join(", ")}`);
        return Promise.resolve(EXIT.usage);
      }
      terminal.streams.stdout.write(`${SCRIPTS[known](commands())}\n`);
      return Promise.resolve(EXIT.ok);
    },
  };
}

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], (commands: readonly Command[]) => string>> = {
  bash: (commands) =>
    [
      "_holdfast() {",
      "  local words",
      `  case "\${COMP_WORDS[1]}" in`,
      ...commands.map((command) => `    ${command.name}) words="${optionsOf(command).join(" ")}" ;;`),
      `    *) words="${namesOf(commands).join(" ")}" ;;`,
      "  esac",
      `  [ "$COMP_CWORD" -eq 1 ] && words="${namesOf(commands).join(" ")}"`,
      '  COMPREPLY=($(compgen -W "$words" -- "$2"))',
      "}",
      "complete -o default -F _holdfast holdfast",
    ].join("\n"),
  zsh: (commands) =>
    [
      "#compdef holdfast",
      "_holdfast() {",
      "  if (( CURRENT == 2 )); then",
      `    compadd ${namesOf(commands).join(" ")}`,
      "    return",
      "  fi",
      '  case "$words[2]" in',
      ...commands.map((command) => `    ${command.name}) compadd -- ${optionsOf(command).join(" ")} ;;`),
      "  esac",
      "}",
      "compdef _holdfast holdfast",
    ].join("\n"),
  fish: (commands) =>
    commands
      .flatMap((command) => [
        `complete -c holdfast -n __fish_use_subcommand -f -a ${command.name} -d '${quoted(command.summary)}'`,
        ...optionsOf(command).map(
          (option) =>
            `complete -c holdfast -n '__fish_seen_subcommand_from ${command.name}' -l ${option.slice(2)}`,
        ),
      ])
      .join("\n"),
};

function namesOf(commands: readonly Command[]): string[] {
  return [...commands.map(({ name }) => name), "help"];
}

function optionsOf({ options }: Command): string[] {
  return Object.keys({ ...options, ...COMMON }).map((name) => `--${name}`);
}

function quoted(text: string): string {
  return text.replaceAll("'", "\\'");
}
