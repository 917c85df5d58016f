import { bitLength, option, parity, sorted, whole } from "./bytes.js";
import { WHOLE } from "./entropy.js";
import { need, only } from "./errors.js";
import { bucket, keyedHash, scramble, scrambleBelow } from "./hashes.js";

export const odds = (threshold) => Number(threshold) / Number(WHOLE - threshold);

export const either = (ratio) => Math.max(ratio, 1 / ratio);

const inOrder = (fields) => fields;
const backwards = (fields) => fields.reverse();

/** What `hash` makes of a value and of public draws, or any answer. */
function response(truth, buckets, drawn, hash, order = inOrder) {
  return {
    widths: order([...drawn, bitLength(buckets - 1n)]),
    ratio: 1 + Number(buckets) * odds(truth),
    buckets,
    whisper(value, entropy) {
      const fields = drawn.map((width) => entropy.public.bits(width));
      return order([...fields, entropy.coin(truth) ? hash(value, ...fields, entropy) : entropy.below(buckets)]);
    },
  };
}

/** rr, grr */
export const direct = (size, _, { truth }) => response(truth, size, [], (value) => value);

/** square-wave */
export function near(size, options, { truth }) {
  const reach = 2n * option(options, "half_width", 0n, size - 1n);
  const places = size + reach;
  const ratio = 1 + (Number(places) / Number(reach + 1n)) * odds(truth);
  return { ...response(truth, places, [], (value, entropy) => value + entropy.below(reach + 1n)), ratio };
}

/** A bit for each row: the parity of what it selects. */
function linear(count, selected) {
  let answer = 0n;
  for (let place = count; place--; ) answer = (answer << 1n) | parity(selected(place));
  return answer;
}

/** olh, blh */
export function byRows(size, options, { truth }) {
  const count = option(options, "hash_bits", 1n, 13n);
  const width = bitLength(size - 1n);
  const hash = (value, rows) => linear(count, (place) => (rows >> (place * BigInt(width))) & scramble(value, width));
  return response(truth, 1n << count, [width * Number(count)], hash);
}

/** olh-wide */
export function wide(_, options, { truth }) {
  const count = option(options, "hash_bits", 1n, 12n);
  const row = (seed, place) => (keyedHash(seed, 2n * place) << 64n) | keyedHash(seed, 2n * place + 1n);
  return response(truth, 1n << count, [64], (value, seed) => linear(count, (place) => row(seed, place) & value));
}

/** olh-seeded */
export function seeded(_, options, { truth }) {
  const buckets = option(options, "hash_size", 2n, 1n << 16n);
  return response(truth, buckets, [64], (value, seed) => bucket(keyedHash(seed, value), buckets));
}

/** The least prime that is at least `size`, which is below 2^27. */
function primeFrom(size) {
  const isPrime = (number) => {
    for (let factor = 2; factor * factor <= number; factor++) if (number % factor === 0) return false;
    return true;
  };
  let found = Number(size);
  while (!isPrime(found)) found++;
  return BigInt(found);
}

/** olh-field */
export function line(size, options, { truth }) {
  const prime = primeFrom(size);
  const fewest = (prime + 8191n) >> 13n; // or a report would name more than 2^13 values
  const intervals = option(options, "hash_size", fewest > 2n ? fewest : 2n, size);
  const widths = [prime - 2n, prime - 1n, intervals - 1n].map(bitLength);
  return {
    widths,
    ratio: 1 + Number(intervals) * odds(truth),
    whisper(value, entropy) {
      const factor = entropy.public.below(prime - 1n);
      const shift = entropy.public.below(prime);
      if (!entropy.coin(truth)) return [factor, shift, entropy.below(intervals)];
      const place = ((factor + 1n) * scrambleBelow(value, size) + shift) % prime;
      return [factor, shift, (place * intervals) / prime];
    },
  };
}

/** olh-sets */
export function ofSets(_, options, { truth }) {
  const length = option(options, "length", 1n, 1n << 13n);
  const buckets = option(options, "hash_size", length + 1n, 1n << 16n);
  const hash = (values, seed, entropy) => {
    const near = sorted([values].flat().map((value) => bucket(keyedHash(seed, value), buckets)));
    const place = entropy.below(length);
    if (place < near.length) return near[place];
    const other = entropy.below(buckets - BigInt(near.length));
    return near.reduce((answer, each) => answer + BigInt(each <= answer), other);
  };
  const ratio = 1 + (Number(buckets) / Number(length)) * odds(truth);
  return { ...response(truth, buckets, [64], hash), ratio, length };
}

/** hr */
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

/** hrr */
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

function bitsOf(options, name, least, most) {
  const found = option(options, name, least, most);
  need(!(found & (found - 1n)), `plan: ${name} must be a power of two`);
  return bitLength(found) - 1;
}

const readSalt = (options) => option(options, "salt", 0n, WHOLE - 1n, String);

export function sketch(options) {
  const placeBits = bitsOf(options, "width", 2n, 1n << 20n);
  const width = 1n << BigInt(placeBits);
  const salt = readSalt(options);
  return {
    functionBits: bitsOf(options, "hashes", 2n, 1n << 20n),
    placeBits,
    width,
    place: (chosen, value) => bucket(keyedHash(keyedHash(salt, chosen), value), width),
  };
}

/** hcms */
export function signSketch(_, options, { truth }) {
  const { functionBits, placeBits, place } = sketch(options);
  const sign = (value, chosen, spot) => parity(place(chosen, value) & spot);
  return response(truth, 2n, [functionBits, placeBits], sign, backwards);
}

export function hashed(size, options) {
  const buckets = option(options, "buckets", 2n, 1n << 16n);
  const hashes = option(options, "hashes", 1n, 16n);
  const salt = readSalt(options);
  const isClosed = only("alphabet", options.alphabet, { closed: true, open: false });
  if (isClosed) whole("plan: a closed alphabet", size * hashes, 2n, 4096n);
  const places = (cohort, value) => {
    const keys = Array.from({ length: Number(hashes) }, (_, hash) => keyedHash(salt, cohort * hashes + BigInt(hash)));
    if (!isClosed) return keys.map((key) => bucket(keyedHash(key, value), buckets));
    // how many values stand before this one by their hashes
    const order = (each) => (keyedHash(keys[0], each) << 64n) | each;
    let rank = 0n;
    for (let other = 0n; other < size; other++) rank += BigInt(order(other) < order(value));
    return [rank % buckets];
  };
  return { cohortBits: bitsOf(options, "cohorts", 1n, 8192n), buckets, hashes: Number(hashes), places };
}

/** o-rr */
export function openAnswers(size, options, { truth }) {
  const { cohortBits, buckets, places } = hashed(size, options);
  return response(truth, buckets, [cohortBits], (value, cohort) => places(cohort, value)[0], backwards);
}
