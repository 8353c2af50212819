/** Makes every random id of the library, with nanoid. */
import { customAlphabet } from "nanoid";

const hex = customAlphabet("0123456789abcdef", 32);
const variant = customAlphabet("89ab", 1);

/** A fresh permit id: 32 hex digits for users, 16 bytes on the wire. */
export function permitId(): string {
  return hex();
}

/** A fresh client id, laid out as a lower-case UUID v4, as Redisson's client ids are. */
export function clientId(): string {
  return hex().replace(/(.{8})(.{4}).(.{3}).(.{3})(.{12})/, `$1-$2-4$3-${variant()}$4-$5`);
}
