/** A request to the server: a script with its keys and arguments, and how its reply is read. */
import type { AnyScript, ArgumentValues, KeyValues, Script } from "../scripts/script.js";

/** The call of any script. `within`: milliseconds until it is given up, with its outcome unknown. */
export interface AnyScriptCall {
  readonly lockName: string;
  readonly script: AnyScript;
  readonly keys: KeyValues;
  readonly args: ArgumentValues;
  readonly within?: number;
  /** The call is sent even while the backlog is full. */
  readonly vital?: boolean;
  /** Takes an answer that comes after the call was given up. */
  readonly late?: (reply: unknown) => void;
}

/** The call of one script, with the keys and arguments that this script takes. */
export interface Call<K extends KeyValues, A extends ArgumentValues> extends AnyScriptCall {
  readonly script: Script<K, A>;
  readonly keys: K;
  readonly args: A;
}

/** A command that is not a script, but may be repeated like one. */
export interface PlainCommand {
  readonly lockName: string;
  /** The keys of the script that the command stands for. */
  readonly keys?: KeyValues;
  /** The script that it runs; its reply has to be one of that. */
  readonly script?: AnyScript;
  /** Sends it once. */
  readonly send: () => Promise<unknown>;
  /** The answer may take long, as that of WAIT: the server counts as away only when the command is given up. */
  readonly blocks?: boolean;
}

/** How a call's reply is read. */
export type Reader<T> = (reply: unknown) => T;
