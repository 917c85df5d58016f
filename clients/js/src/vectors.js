import { either, hashed, odds, sketch } from "./answers.js";
import { option, whole } from "./bytes.js";
import { need } from "./errors.js";

const GRID = 1024n; // steps of a count of one
const MOST = 1n << 30n; // steps that a cell has

/** The bits with a zero pushed in at `place`. */
const withGap = (bits, place) => BigInt.asUintN(Number(place), bits) | ((bits >> place) << (place + 1n));

/** Coins of `zero`, and one of `one` at `place`. */
function tossed(place, width, one, zero, entropy) {
  const others = withGap(entropy.coins(zero, width - 1), place);
  return others | (BigInt(entropy.coin(one)) << place);
}

const bitRatio = (one, zero) => either(odds(one) / odds(zero));

/** sue, oue, the */
export function unary(size, _, { one, zero }) {
  const width = Number(size);
  return {
    widths: [width],
    ratio: bitRatio(one, zero),
    whisper: (value, entropy) => [tossed(value, width, one, zero, entropy)],
  };
}

/** ss */
export function subset(size, options, { include }) {
  const chosen = Number(option(options, "chosen", 1n, size - 1n));
  const width = Number(size);
  return {
    widths: [width],
    ratio: either((odds(include) * (width - chosen)) / chosen),
    whisper(value, entropy) {
      const joins = entropy.coin(include);
      return [withGap(entropy.subset(width - 1, chosen - joins), value) | (BigInt(joins) << value)];
    },
  };
}

/** Heads with probability exp(-numerator/denominator). */
function survives(numerator, denominator, entropy) {
  let rounds = 1n;
  while (entropy.below(denominator * rounds) < numerator) rounds++;
  return rounds % 2n;
}

/** P(z) is proportional to exp(-|z| rate/scale). */
function discreteLaplace(scale, rate, entropy) {
  for (;;) {
    const part = entropy.below(scale);
    if (!survives(part, scale, entropy)) continue;
    let times = 0n;
    while (survives(1n, 1n, entropy)) times++;
    const size = (part + scale * times) / rate;
    const negative = entropy.bits(1);
    if (!negative || size) return negative ? -size : size;
  }
}

/** she */
export function histogram(size, _, coins) {
  const scale = whole("plan: scale", coins.scale, 1n, 1n << 47n);
  const rate = whole("plan: rate", coins.rate, 1n, scale);
  return {
    widths: [32 * Number(size)],
    ratio: Math.exp((Number(2n * GRID) * Number(rate)) / Number(scale)),
    whisper(value, entropy) {
      const words = [];
      for (let each = 0n; each < size; each++) {
        const cell = discreteLaplace(scale, rate, entropy) + (each === value ? GRID : 0n);
        const kept = cell > MOST ? MOST : cell < -MOST ? -MOST : cell;
        words.push(BigInt.asUintN(32, kept).toString(16).padStart(8, "0"));
      }
      return [BigInt(`0x${words.reverse().join("")}`)];
    },
  };
}

/** cms */
export function vectorSketch(_, options, { one, zero }) {
  const { functionBits, width, place } = sketch(options);
  return {
    widths: [Number(width), functionBits],
    ratio: bitRatio(one, zero),
    whisper(value, entropy) {
      const chosen = entropy.public.bits(functionBits);
      return [tossed(place(chosen, value), Number(width), one, zero, entropy), chosen];
    },
  };
}

/** o-rappor */
export function bloom(size, options, { zero }) {
  const { cohortBits, buckets, hashes, places } = hashed(size, options);
  const width = Number(buckets);
  return {
    widths: [width, cohortBits],
    ratio: either(odds(zero)) ** (2 * hashes), // two filters differ in at most 2 hashes bits
    whisper(value, entropy) {
      const cohort = entropy.public.bits(cohortBits);
      let bits = entropy.coins(zero, width);
      for (const place of new Set(places(cohort, value))) bits ^= 1n << place;
      return [bits, cohort];
    },
  };
}

/** rappor: the same; more coins only take away. */
export function rappor(size, options, { zero, loud, quiet }) {
  const memo = bloom(size, options, { zero });
  const [width] = memo.widths;
  need(loud + quiet >= 0n, "plan: rappor has three thresholds");
  return {
    ...memo,
    recall([kept, cohort], entropy) {
      const heard = kept & entropy.coins(loud, width);
      return [heard | (~kept & entropy.coins(quiet, width)), cohort];
    },
  };
}
