// What a plan says of those who mix its reports.

import { LARGEST, option } from "./bytes.js";
import { readDelta } from "./encodings.js";
import { keys, need } from "./errors.js";
import { readEpsilon } from "./oracles.js";

const MOST_HOPS = 16;

/** The ids of plans whose reports leave sealed alone. */
export const sealedPlans = new Set();

export const isId = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

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
  return Object.freeze({
    epsilon: analyst.epsilon,
    delta: Number(delta[0]) / Number(delta[1]),
    least: Number(option(data, "least", 2n, roundPeople)),
    fakes: Number(fakes),
    colluding: fakes ? readEpsilon(data.colluding).epsilon : null,
    hops: Object.freeze([...hops]),
  });
}
