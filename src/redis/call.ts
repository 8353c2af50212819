/** What is asked of the server: a script with its keys and arguments, and how its reply is read. */
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";

/** One script call. `within`: milliseconds until it is given up, with its outcome unknown. */
export interface Call<K extends KeyValues, A extends ArgumentValues> {
  readonly lockName: string;
  readonly script: Script<K, A>;
  readonly keys: K;
  readonly args: A;
  readonly within?: number;
  /** It is sent however many calls are unfinished. */
  readonly vital?: boolean;
}

/** A script's call, whichever. */
export type AnyScriptCall = Call<KeyValues, ArgumentValues>;

/** A command that is no script, and may be repeated likewise. */
export interface PlainCommand {
  readonly lockName: string;
  /** Those of a script that it stands for. */
  readonly keys?: KeyValues;
  /** Sends it once. */
  readonly send: () => Promise<unknown>;
  /** Its answer may take a while, as that of a WAIT does: the server counts as away only when it is given up. */
  readonly blocks?: boolean;
}

/** How a call's reply is read. */
export type Reader<T> = (reply: unknown) => T;
