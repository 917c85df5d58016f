// docs/wire.md says what each oracle draws.

import * as answers from "./answers.js";
import { joined, option, toBytes } from "./bytes.js";
import { WHOLE } from "./entropy.js";
import { need, only } from "./errors.js";
import * as vectors from "./vectors.js";

export const SLACK = 1e-9; // of floats; coins are integers

// how it is built, and log2 of its largest size
const ORACLES = {
  rr: [answers.direct, 1],
  grr: [answers.direct, 24],
  she: [vectors.histogram, 16],
  the: [vectors.unary, 20],
  sue: [vectors.unary, 20],
  oue: [vectors.unary, 20],
  ss: [vectors.subset, 20],
  blh: [answers.byRows, 26],
  olh: [answers.byRows, 26],
  "olh-seeded": [answers.seeded, 64],
  "olh-sets": [answers.ofSets, 64],
  "olh-wide": [answers.wide, 128],
  hr: [answers.columns, 26],
  hrr: [answers.coefficients, 26],
  cms: [vectors.vectorSketch, 64],
  hcms: [answers.signSketch, 64],
  rappor: [vectors.rappor, 64],
  "o-rr": [answers.openAnswers, 64],
  "o-rappor": [vectors.bloom, 64],
};

export function readEpsilon(text) {
  const value = /^\d+(\.\d+)?(E[+-]?\d+)?$/.test(text) ? Number(text) : 0;
  need(value > 0 && value <= 100, "plan: epsilon must be a decimal above 0 and at most 100");
  return value;
}

export const keeps = (value, limit) => value <= limit * (1 + SLACK);

export const promised = (name, ratio, epsilon) =>
  need(keeps(ratio, Math.exp(epsilon)), `plan: the thresholds of '${name}' promise less than its epsilon`);

/** Refused if its coins promise less privacy than its epsilon. */
export function readOracle(data) {
  const { name, options, thresholds } = data;
  const [build, digits] = only("oracle", name, ORACLES);
  const size = option(data, "size", 2n, 1n << BigInt(digits));
  const epsilon = readEpsilon(data.epsilon);
  const coins = Object.keys(thresholds).map((coin) => [coin, option(thresholds, coin, 0n, WHOLE)]);
  const oracle = build(size, options, Object.fromEntries(coins));
  promised(name, oracle.ratio, epsilon);
  const bits = oracle.widths.reduce((total, width) => total + width);
  return { ...oracle, name, size, epsilon, bytes: Math.ceil(bits / 8) };
}

const packed = ({ widths, bytes }, fields) =>
  toBytes(fields.reduceRight((total, field, place) => (total << BigInt(widths[place])) | field, 0n), bytes);

/** All asks draw, then those that keep a memo draw what it is heard through. */
export function whispers(asks, read, entropy) {
  const memos = asks.map((ask) => ask.whisper(ask.encode(read, entropy), entropy));
  const heard = asks.map((ask, place) => ask.recall?.(memos[place], entropy) ?? memos[place]);
  return joined(...asks.map((ask, place) => packed(ask, heard[place])));
}
