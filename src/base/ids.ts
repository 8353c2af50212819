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
  const digits = hex();
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `4${digits.slice(13, 16)}`,
    `${variant()}${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join("-");
}
