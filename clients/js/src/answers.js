// Oracles whose report is one answer, beside what they drew in public: directly, hashed, or as a sign.
//
// An oracle is built from its size, options and coins. It has `widths`, the bits of its report's fields; `ratio`, the
// most that the chances of one report differ between two values; and `whisper`, which gives the fields (of a memo,
// if it has `recall` too).

import { bitLength, parity, powerOfTwo, whole } from "./bytes.js";
import { WHOLE } from "./entropy.js";
import { bucket, keyedHash, scramble } from "./hashes.js";

/** heads : tails of a threshold's coin, as a float. */
export const odds = (threshold) => Number(threshold) / Number(WHOLE - threshold);

/** The same ratio whichever way round it is. */
export const either = (ratio) => Math.max(ratio, 1 / ratio);

/** p/q where a coin tells the truth, and else one of `size` answers is drawn. */
const answerRatio = (truth, size) => 1 + Number(size) * odds(truth);

const readSalt = (options) => whole("plan: salt", options.salt, 0n, WHOLE - 1n);

/** rr, grr */
export function direct(size, _, { truth }) {
  return {
    widths: [bitLength(size - 1n)],
    ratio: answerRatio(truth, size),
    whisper: (value, entropy) => [entropy.coin(truth) ? value : entropy.below(size)],
  };
}

/** olh, blh: a linear hash by random rows, to 2^b values. */
export function linear(size, options, { truth }) {
  const count = Number(whole("plan: hash_bits", options.hash_bits, 1n, 12n));
  const width = bitLength(size - 1n);
  const hash = (rows, point) => {
    let answer = 0n;
    for (let place = BigInt(count); place--; ) {
      answer = (answer << 1n) | parity((rows >> (place * BigInt(width))) & point);
    }
    return answer;
  };
  return {
    widths: [width * count, count],
    ratio: answerRatio(truth, 2 ** count),
    whisper(value, entropy) {
      const rows = entropy.public.bits(width * count);
      return [rows, entropy.coin(truth) ? hash(rows, scramble(value, width)) : entropy.bits(count)];
    },
  };
}

/** olh-seeded: a hash with a key of the device's own. */
export function seeded(_, options, { truth }) {
  const buckets = whole("plan: hash_size", options.hash_size, 2n, 1n << 16n);
  return {
    widths: [64, bitLength(buckets - 1n)],
    ratio: answerRatio(truth, buckets),
    whisper(value, entropy) {
      const seed = entropy.public.bits(64);
      return [seed, entropy.coin(truth) ? bucket(keyedHash(seed, value), buckets) : entropy.below(buckets)];
    },
  };
}

/** hr: a column of a Hadamard matrix, from the half that agrees with the value's row, or from the other one. */
export function columns(size, _, { agree }) {
  const width = bitLength(size);
  return {
    widths: [width],
    ratio: either(odds(agree)),
    whisper(value, entropy) {
      const row = value + 1n;
      const column = entropy.bits(width);
      const agrees = !parity(row & column);
      return [agrees === entropy.coin(agree) ? column : column ^ (row & -row)];
    },
  };
}

/** hrr: the sign of one Hadamard coefficient, never the constant one. */
export function coefficients(size, _, { agree }) {
  const others = (1n << BigInt(bitLength(size - 1n))) - 1n;
  return {
    widths: [bitLength(others - 1n), 1],
    ratio: either(odds(agree)),
    whisper(value, entropy) {
      const coefficient = entropy.public.below(others);
      const sign = parity((coefficient + 1n) & value);
      return [coefficient, entropy.coin(agree) ? sign : 1n - sign];
    },
  };
}

export function sketch(options) {
  const hashes = powerOfTwo("plan: hashes", options.hashes, 2n, 1n << 20n);
  const width = powerOfTwo("plan: width", options.width, 2n, 1n << 20n);
  const salt = readSalt(options);
  const place = (chosen, value) => bucket(keyedHash(keyedHash(salt, chosen), value), width);
  return { functionBits: bitLength(hashes) - 1, width, place };
}

/** hcms: the sign of one Hadamard coefficient of the value's bucket. */
export function signSketch(_, options, { truth }) {
  const { functionBits, width, place } = sketch(options);
  const placeBits = bitLength(width) - 1;
  return {
    widths: [1, placeBits, functionBits],
    ratio: answerRatio(truth, 2),
    whisper(value, entropy) {
      const chosen = entropy.public.bits(functionBits);
      const spot = entropy.public.bits(placeBits);
      const sign = parity(place(chosen, value) & spot);
      return [entropy.coin(truth) ? sign : entropy.bits(1), spot, chosen];
    },
  };
}

export function hashed(size, options) {
  const cohorts = powerOfTwo("plan: cohorts", options.cohorts, 1n, 8192n);
  const buckets = whole("plan: buckets", options.buckets, 2n, 1n << 16n);
  const hashes = whole("plan: hashes", options.hashes, 1n, 16n);
  const salt = readSalt(options);
  const isClosed = options.alphabet === "closed";
  if (isClosed) whole("plan: a closed alphabet", `${size * hashes}`, 2n, 4096n);
  const places = (cohort, value) => {
    const keys = Array.from({ length: Number(hashes) }, (_, hash) => keyedHash(salt, cohort * hashes + BigInt(hash)));
    if (!isClosed) return keys.map((key) => bucket(keyedHash(key, value), buckets));
    // values are permuted: how many stand before this one by their hashes
    const own = keyedHash(keys[0], value);
    let rank = 0n;
    for (let other = 0n; other < size; other++) {
      const hash = keyedHash(keys[0], other);
      if (hash < own || (hash === own && other < value)) rank++;
    }
    return [rank % buckets];
  };
  return { cohortBits: bitLength(cohorts) - 1, buckets, hashes: Number(hashes), places };
}

/** o-rr: the value's bucket in a cohort, or a uniform one. */
export function openAnswers(size, options, { truth }) {
  const { cohortBits, buckets, places } = hashed(size, options);
  return {
    widths: [bitLength(buckets - 1n), cohortBits],
    ratio: answerRatio(truth, buckets),
    whisper(value, entropy) {
      const cohort = entropy.public.bits(cohortBits);
      const [place] = places(cohort, value);
      return [entropy.coin(truth) ? place : entropy.below(buckets), cohort];
    },
  };
}
