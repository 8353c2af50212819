export interface Entry {
  readonly name: string;
  readonly type: string;
  readonly variadic: boolean;
}

export interface Header {
  readonly keys: readonly Entry[];
  readonly args: readonly Entry[];
}

export function parseHeader(lines: readonly string[], fail: (line: number, message: string) => never): Header;
