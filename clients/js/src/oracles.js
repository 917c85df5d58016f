// Every oracle that a plan can hold, and the check that its coins keep its promise.

import * as answers from "./answers.js";
import { joined, toBytes, whole } from "./bytes.js";
import { WHOLE } from "./entropy.js";
import { need } from "./errors.js";
import * as vectors from "./vectors.js";

const SLACK = 1e-9; // for the floats that check a promise; the coins themselves are integers

// how it is built, and the binary digits of the largest size it takes
const ORACLES = {
  rr: [answers.direct, 1],
  grr: [answers.direct, 24],
  she: [vectors.histogram, 16],
  the: [vectors.unary, 20],
  sue: [vectors.unary, 20],
  oue: [vectors.unary, 20],
  ss: [vectors.subset, 20],
  blh: [answers.linear, 26],
  olh: [answers.linear, 26],
  "olh-seeded": [answers.seeded, 64],
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

/** Whether a number keeps a limit, but for the rounding of floats. */
export const keeps = (value, limit) => value <= limit * (1 + SLACK);

/** The oracle that a plan describes; refused if its coins promise less privacy than its epsilon. */
export function readOracle({ name, size: values, epsilon: asked, options, thresholds }) {
  need(Object.hasOwn(ORACLES, name), "plan: an oracle's name is unknown");
  const [build, digits] = ORACLES[name];
  const size = whole("plan: size", values, 2n, 1n << BigInt(digits));
  const epsilon = readEpsilon(asked);
  const coins = Object.entries(thresholds).map(([coin, text]) => [coin, whole("plan: threshold", text, 0n, WHOLE)]);
  const oracle = build(size, options, Object.fromEntries(coins));
  need(keeps(oracle.ratio, Math.exp(epsilon)), `plan: the thresholds of '${name}' promise less than its epsilon`);
  const bits = oracle.widths.reduce((total, width) => total + width);
  return { ...oracle, size, epsilon, bytes: Math.ceil(bits / 8) };
}

/** Fields, least significant bit first, padded with zero bits. */
function packed({ widths, bytes }, fields) {
  let [total, offset] = [0n, 0n];
  fields.forEach((field, place) => {
    total |= field << offset;
    offset += BigInt(widths[place]);
  });
  return toBytes(total, bytes);
}

/** The payload of some asks: all draw, then those that keep a memo draw what it is heard through. */
export function whispers(asks, codes, entropy) {
  const memos = asks.map(({ oracle, encoding }) => oracle.whisper(encoding.encode(codes), entropy));
  const heard = asks.map(({ oracle }, place) => oracle.recall?.(memos[place], entropy) ?? memos[place]);
  return joined(...asks.map(({ oracle }, place) => packed(oracle, heard[place])));
}
