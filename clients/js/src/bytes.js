// Bytes and integers. Integers are BigInts; counts of bits and bytes are numbers.

import { need, SottovoceError } from "./errors.js";

export const LARGEST = 2n ** 53n; // that every language's JSON keeps

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes of hexadecimal digits: `count` of them, if it is given. */
export function fromHex(name, text, count = text?.length / 2) {
  need(/^([0-9a-f]{2})*$/.test(text) && text.length === 2 * count, `${name} must be hexadecimal digits`);
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export const toInteger = (bytes) => BigInt(`0x0${toHex(Uint8Array.from(bytes).reverse())}`);
export const toBytes = (number, count) => fromHex("", number.toString(16).padStart(2 * count, "0")).reverse();

export const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** How many binary digits an integer has; 0 has none. */
export const bitLength = (number) => (number ? number.toString(2).length : 0);

/** 1n if an odd number of bits are set, 0n if not. */
export function parity(number) {
  let odd = 0n;
  for (let left = number; left; left &= left - 1n) odd ^= 1n;
  return odd;
}

export function leb128(number) {
  return number < 128 ? [number] : [(number % 128) + 128, ...leb128(Math.floor(number / 128))];
}

export function crc32(bytes) {
  let rest = ~0;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return BigInt(~rest >>> 0);
}

export async function sha256(bytes) {
  const subtle = globalThis.crypto?.subtle;
  need(subtle, "WebCrypto is missing: open the page by https or from localhost", SottovoceError);
  return new Uint8Array(await subtle.digest("SHA-256", bytes));
}

/** A whole number in a range, as a BigInt; plans hold large ones as decimal strings. */
export function whole(name, value, least, most) {
  const found = Number.isInteger(value) || /^-?\d{1,40}$/.test(value) ? BigInt(value) : most + 1n;
  need(typeof value !== "object" && found >= least && found <= most, `${name} must be ${least} to ${most}`);
  return found;
}

export function powerOfTwo(name, value, least, most) {
  const found = whole(name, value, least, most);
  need(!(found & (found - 1n)), `${name} must be a power of two`);
  return found;
}
