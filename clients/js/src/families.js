// Families of cohorts: a ticket gives a cohort, and a cohort its asks.
//
// A family has `count` cohorts and `weight` tickets, the `attributes` that its asks read, the oracles of each of its
// `kinds` of cohorts, and `at(ticket)`: a cohort's number and its asks.

import { LARGEST, whole } from "./bytes.js";
import { cells, fullMask, parities, readEncoding } from "./encodings.js";
import { need } from "./errors.js";
import { readOracle } from "./oracles.js";

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0n);

/** Which of the shares, laid end to end, a ticket falls into, and where in it. */
export function shareOf(ticket, shares) {
  let [place, left] = [0, ticket];
  while (left >= shares[place]) left -= shares[place++];
  return [place, left];
}

function ask(encoding, oracle) {
  need(encoding.size === oracle?.size, "plan: an oracle cannot take its ask's values");
  return { encoding, oracle };
}

/** All ways to choose `order` of some things and a digit below `weights[i]` for each, in order. */
class Choices {
  constructor(weights, order) {
    this.weights = weights;
    this.order = order;
    // counts[j][i]: choices of j among the things from i on
    this.counts = [Array(weights.length + 1).fill(1n)];
    for (let size = 0; size < order; size++) {
      const row = [0n];
      for (let place = weights.length; place--; ) row.unshift(row[0] + weights[place] * this.counts[size][place + 1]);
      this.counts.push(row);
    }
    this.total = this.counts[order][0];
  }

  unrank(rank) {
    const [members, digits] = [[], []];
    let [left, place] = [rank, 0];
    for (let rest = this.order; rest--; place++) {
      const rests = this.counts[rest];
      for (; left >= this.weights[place] * rests[place + 1]; place++) left -= this.weights[place] * rests[place + 1];
      members.push(place);
      digits.push(left / rests[place + 1]);
      left %= rests[place + 1];
    }
    return [members, digits];
  }

  rank(members, digits) {
    let [rank, place] = [0n, 0];
    members.forEach((member, slot) => {
      const rests = this.counts[this.order - 1 - slot];
      for (; place < member; place++) rank += this.weights[place] * rests[place + 1];
      rank += digits[slot] * rests[++place];
    });
    return rank;
  }
}

function listed({ cohorts }, schema) {
  const asks = cohorts.map((cohort) =>
    cohort.asks.map((each) => ask(readEncoding(each.encoding, schema), readOracle(each.oracle))),
  );
  const weights = cohorts.map((cohort) => whole("plan: weight", cohort.weight, 1n, LARGEST));
  return {
    count: BigInt(cohorts.length),
    weight: sum(weights),
    attributes: asks.flat().flatMap((each) => each.encoding.attributes),
    kinds: asks.map((each) => each.map(({ oracle }) => oracle)),
    at(ticket) {
      const [cohort] = shareOf(ticket, weights);
      return { cohort, asks: asks[cohort] };
    },
  };
}

function together(data, schema) {
  need(data.cohorts.length === 1, "plan: asks that are kept together need exactly one cohort");
  return listed(data, schema);
}

function subsets(data, schema) {
  const { attributes } = data;
  const order = Number(whole("plan: order", data.order, 1n, BigInt(attributes.length)));
  const choices = new Choices(attributes.map(() => 1n), order);
  const oracles = data.oracles.map(readOracle);
  return {
    count: choices.total,
    weight: choices.total,
    attributes,
    kinds: oracles.map((oracle) => [oracle]),
    at(ticket) {
      const [members] = choices.unrank(ticket);
      const cell = cells(schema, members.map((member) => attributes[member]));
      return { cohort: Number(ticket), asks: [ask(cell, oracles.find((oracle) => oracle.size === cell.size))] };
    },
  };
}

// For each bit of an answer, whether it multiplies the attribute at a place.
const SHAPES = {
  parity: () => [() => true],
  corner: (order) => Array.from({ length: order }, (_, bit) => (place) => place === bit),
  star: (order) => Array.from({ length: order - 1 }, (_, bit) => (place) => !place || place === bit + 1),
};

function readBlock(data, masks, weights) {
  need(Object.hasOwn(SHAPES, data.shape), "plan: shape must be parity, corner or star");
  const order = Number(whole("plan: order", data.order, data.shape === "star" ? 2n : 1n, BigInt(masks.length)));
  const times = whole("plan: times", data.times, 1n, LARGEST);
  const tickets = new Choices(masks.map((mask, place) => mask * weights[place]), order);
  return {
    products: SHAPES[data.shape](order),
    times,
    tickets,
    choices: new Choices(masks, order),
    oracle: readOracle(data.oracle),
    share: times * tickets.total,
  };
}

function signs({ attributes, weights, blocks }, schema) {
  const masks = attributes.map((name) => fullMask(schema, name));
  const heavy = attributes.map((_, place) => whole("plan: weight", weights[place], 1n, 1n << 20n));
  const parts = blocks.map((each) => readBlock(each, masks, heavy));
  const shares = parts.map((each) => each.share);
  const counts = parts.map((each) => each.choices.total);
  return {
    count: sum(counts),
    weight: sum(shares),
    attributes,
    kinds: parts.map((each) => [each.oracle]),
    at(ticket) {
      const [number, left] = shareOf(ticket, shares);
      const { products, times, choices, tickets, oracle } = parts[number];
      const [members, drawn] = tickets.unrank(left / times);
      const digits = drawn.map((digit, slot) => digit / heavy[members[slot]]);
      const rows = products.map((has) => digits.map((digit, slot) => (has(slot) ? `${digit + 1n}` : 0)));
      const encoding = parities(schema, members.map((member) => attributes[member]), rows);
      const cohort = sum(counts.slice(0, number)) + choices.rank(members, digits);
      return { cohort: Number(cohort), asks: [ask(encoding, oracle)] };
    },
  };
}

const FAMILIES = { listed, together, subsets, signs };

export function readCohorts(data, schema) {
  need(Object.hasOwn(FAMILIES, data.family), "plan: its family of cohorts is unknown");
  const family = FAMILIES[data.family](data, schema);
  need(family.weight > 0n && family.count < 1n << 32n, "plan: it has no cohorts, or more than a report can name");
  return { ...family, attributes: [...new Set(family.attributes)] };
}
