// What a plan says of those who mix its reports.

import { fromHex, LARGEST, option, toInteger } from "./bytes.js";
import { readDelta } from "./encodings.js";
import { keys, need } from "./errors.js";
import { readEpsilon } from "./oracles.js";

const MOST_HOPS = 16;

/** The ids of plans whose reports leave sealed alone. */
export const sealedPlans = new Set();

export const isId = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

// of Curve25519: its field, and the points with which every secret is zero
const FIELD = 2n ** 255n - 19n;
const LOW_ORDER = [
  0n, 1n, FIELD - 1n,
  325606250916557431795983626356110631294008115727848805560023387167927233504n,
  39382357235489614581723060781553021112529911719440698176882885853963445705823n,
];

/** Whether a key is written in its one way, and no point of low order: found before anything is spent. */
function isPoint(key) {
  const u = toInteger(fromHex("plan: hops", key));
  return u < FIELD && !LOW_ORDER.includes(u);
}

/** A chance that nobody can bring about. */
export const isSmall = ([top, bottom], people) => 1000n * top <= bottom && top * people < bottom;

export function readShuffling(data, own, people, roundPeople) {
  keys(data, "epsilon,delta,least,cap,fakes,colluding,hops");
  const { hops } = data;
  const [analyst, cap] = [readEpsilon(data.epsilon), readEpsilon(data.cap)];
  const isWithin = ({ exact: [a, b] }, { exact: [c, d] }) => a * d <= c * b;
  need(isWithin(analyst, own) && isWithin(own, cap), "plan: epsilon must lie between the analyst's and the cap");
  const delta = readDelta(data.delta);
  need(isSmall(delta, people), "plan: delta must be at most 1/1000 and below 1/people");
  const fakes = option(data, "fakes", 0n, 16n * people < LARGEST ? 16n * people : LARGEST);
  need((data.colluding === null) === !fakes, "plan: colluding belongs to a plan with fakes, and to no other");
  need(Array.isArray(hops) && hops.every(isId), "plan: hops must be public keys");
  need(hops.length !== 1 && hops.length <= MOST_HOPS, "plan: hops must be those of shufflers and the collector's");
  need(new Set(hops).size === hops.length, "plan: hops must be different keys");
  need(hops.every(isPoint), "plan: hops must be public keys of X25519");
  return Object.freeze({
    epsilon: analyst.epsilon,
    delta: Number(delta[0]) / Number(delta[1]),
    least: Number(option(data, "least", 2n, roundPeople)),
    fakes: Number(fakes),
    colluding: fakes ? readEpsilon(data.colluding).epsilon : null,
    hops: Object.freeze([...hops]),
  });
}
