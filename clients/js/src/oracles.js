// docs/wire.md says what each oracle draws.

import * as answers from "./answers.js";
import { billionths, joined, option, toBytes } from "./bytes.js";
import { WHOLE } from "./entropy.js";
import { keys, need, only } from "./errors.js";
import * as vectors from "./vectors.js";

export const SLACK = 1e-9; // of floats; coins are integers

const SKETCH = "hashes,width,salt";
const HASHED = "cohorts,buckets,hashes,salt,alphabet";

// how it is built, log2 of its largest size, its thresholds and its options
const ORACLES = {
  rr: [answers.direct, 1, "truth", ""],
  grr: [answers.direct, 24, "truth", ""],
  she: [vectors.histogram, 16, "scale,rate", ""],
  the: [vectors.unary, 20, "one,zero", "theta"],
  sue: [vectors.unary, 20, "one,zero", ""],
  oue: [vectors.unary, 20, "one,zero", ""],
  ss: [vectors.subset, 20, "include", "chosen"],
  blh: [answers.byRows, 26, "truth", "hash_bits"],
  olh: [answers.byRows, 26, "truth", "hash_bits"],
  "olh-field": [answers.line, 26, "truth", "hash_size"],
  "olh-seeded": [answers.seeded, 64, "truth", "hash_size"],
  "olh-sets": [answers.ofSets, 64, "truth", "length,hash_size"],
  "olh-wide": [answers.wide, 128, "truth", "hash_bits"],
  hr: [answers.columns, 26, "agree", ""],
  hrr: [answers.coefficients, 26, "agree", ""],
  cms: [vectors.vectorSketch, 64, "one,zero", SKETCH],
  hcms: [answers.signSketch, 64, "truth", SKETCH],
  rappor: [vectors.rappor, 64, "zero,loud,quiet", `${HASHED},instantaneous`],
  "o-rr": [answers.openAnswers, 64, "truth", HASHED],
  "o-rappor": [vectors.bloom, 64, "zero", HASHED],
  "square-wave": [answers.near, 11, "truth", "half_width"],
};

const DECIMAL = /^((?!0\.0{6})(0|[1-9]\d*)(\.\d*[1-9])?|[1-9](\.\d*[1-9])?E-([7-9]|[1-5]\d))$/;

export function readEpsilon(text) {
  const epsilon = typeof text === "string" && DECIMAL.test(text) ? Number(text) : 0;
  need(epsilon > 0 && epsilon <= 100, "plan: epsilon must be a decimal above 0 and at most 100");
  const [number, power = 0] = text.split("E");
  const [before, after = ""] = number.split(".");
  const exact = [BigInt(before + after), 10n ** BigInt(after.length - power)];
  return { epsilon, exact, cost: billionths(exact) };
}

export const keeps = (value, limit) => value <= limit * (1 + SLACK);

export const promised = (name, ratio, epsilon) =>
  need(keeps(ratio, Math.exp(epsilon)), `plan: the thresholds of '${name}' promise less than its epsilon`);

/** Refused if its coins promise less privacy than its epsilon. */
export function readOracle(data) {
  keys(data, "name,size,epsilon,options,thresholds,bits");
  const { name, options, thresholds } = data;
  const [build, digits, known, taken] = only("oracle", name, ORACLES);
  keys(thresholds, known);
  keys(options, taken);
  const size = option(data, "size", 2n, 1n << BigInt(digits), String);
  const priced = readEpsilon(data.epsilon);
  const coins = Object.keys(thresholds).map((coin) => [coin, option(thresholds, coin, 0n, WHOLE, String)]);
  const oracle = build(size, options, Object.fromEntries(coins));
  promised(name, oracle.ratio, priced.epsilon);
  const bits = oracle.widths.reduce((total, width) => total + width);
  need(data.bits === bits, "plan: bits must be those of a report");
  return { ...oracle, name, size, ...priced, bytes: Math.ceil(bits / 8) };
}

const packed = ({ widths, bytes }, fields) =>
  toBytes(fields.reduceRight((total, field, place) => (total << BigInt(widths[place])) | field, 0n), bytes);

/** All asks draw, then those that keep a memo draw what it is heard through. */
export function whispers(asks, read, entropy) {
  const memos = asks.map((ask) => ask.whisper(ask.encode(read, entropy), entropy));
  const heard = asks.map((ask, place) => ask.recall?.(memos[place], entropy) ?? memos[place]);
  return joined(...asks.map((ask, place) => packed(ask, heard[place])));
}
