import { bitLength } from "./bytes.js";

const word = (number) => BigInt.asUintN(64, number);

function mix(value) {
  let mixed = word((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n);
  mixed = word((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
  return mixed ^ (mixed >> 31n);
}

export function keyedHash(key, value) {
  const inner = mix(word(value + 0x9e3779b97f4a7c15n)) ^ mix(key ^ 0xd1b54a32d192ed03n);
  return mix(word(mix(inner) + key));
}

export const bucket = (hash, buckets) => ((hash >> 32n) * buckets) >> 32n;

/** A fixed permutation of the words of `width` bits. */
export function scramble(value, width) {
  let mixed = value;
  for (const factor of [0x9e3779b1n, 0x85ebca77n, 0xc2b2ae3dn]) {
    mixed = BigInt.asUintN(width, mixed * factor);
    mixed ^= mixed >> BigInt((width + 1) >> 1);
  }
  return mixed;
}

/** The same for the numbers below `size`. */
export function scrambleBelow(value, size) {
  let found = value;
  do found = scramble(found, bitLength(size - 1n));
  while (found >= size);
  return found;
}

/** Another one, for up to 128 bits (Feistel). */
export function permuted(number, bits) {
  let [above, below] = [bits / 2n, bits - bits / 2n];
  let [high, low] = [number >> below, number & ((1n << below) - 1n)];
  for (let turn = 0n; turn < 4n; turn++) {
    [high, low] = [low, high ^ (keyedHash(turn, low) >> (64n - above))];
    [above, below] = [below, above];
  }
  return (high << below) | low;
}

export const tagOf = (number, key, bits) => keyedHash(keyedHash(key, number >> 64n), word(number)) >> (64n - bits);
