// Bytes and integers. Integers are BigInts; counts of bits and bytes are numbers.

import { need, SottovoceError } from "./errors.js";

export const LARGEST = 2n ** 53n; // that JSON keeps

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export function fromHex(name, text, count = text?.length / 2) {
  need(/^([0-9a-f]{2})*$/.test(text) && text.length === 2 * count, `${name} must be hexadecimal digits`);
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export const toInteger = (bytes) => BigInt(`0x0${toHex(Uint8Array.from(bytes).reverse())}`);
export const toBytes = (number, count) => fromHex("", number.toString(16).padStart(2 * count, "0")).reverse();

export const utf8 = (text) => new TextEncoder().encode(text);
export const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...part]));

export const sorted = (numbers) => [...BigUint64Array.from(new Set(numbers)).sort()];

export const bitLength = (number) => (number ? number.toString(2).length : 0);

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

/** From a safe number, a BigInt or text. */
export function whole(name, value, least, most) {
  const exact = typeof value === "number" ? Math.abs(value) <= LARGEST : typeof value !== "object";
  const found = exact && /^\s*[+-]?\d{1,40}\s*$/.test(value) ? BigInt(value) : most + 1n;
  need(found >= least && found <= most, `${name} must be ${least} to ${most}`);
  return found;
}

export function option(part, name, least, most, written = Number) {
  const found = whole(`plan: ${name}`, part[name], least, most);
  need(part[name] === written(found), `plan: ${name} must be written as sottovoce writes it`);
  return found;
}

export const flag = (part, name) => need(typeof part[name] === "boolean", `plan: ${name} must be true or false`);

export const billionths = ([top, bottom]) => Number((top * 10n ** 9n + bottom - 1n) / bottom);
