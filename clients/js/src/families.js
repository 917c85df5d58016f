import { LARGEST, option } from "./bytes.js";
import { cells, fullMask, masked, readEncoding } from "./encodings.js";
import { keys, need, only } from "./errors.js";
import { readEpsilon, readOracle } from "./oracles.js";

const MOST_VIEWS = 1n << 16n;
const MOST_BITS = 128; // of an oracle's size, so that no more attributes make a table

/** The most that a cohort's asks have of something. */
export const largest = ({ kinds }, what) =>
  Math.max(...kinds.map((asks) => asks.reduce((total, ask) => total + (ask[what] ?? 0), 0)));

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0n);

/** Which share a ticket falls into, and where in it. */
export function shareOf(ticket, shares) {
  let [place, left] = [0, ticket];
  while (left >= shares[place]) left -= shares[place++];
  return [place, left];
}

function ask(encoding, oracle) {
  need(encoding.size === oracle?.size, "plan: an oracle cannot take its ask's values");
  return { ...oracle, ...encoding, ...encoding.fit?.(oracle) };
}

function listed({ cohorts }, schema) {
  const kinds = cohorts.map((cohort) => {
    keys(cohort, "weight,asks");
    return cohort.asks.map((each) => {
      keys(each, "encoding,oracle");
      return ask(readEncoding(each.encoding, schema), readOracle(each.oracle));
    });
  });
  const weights = cohorts.map((cohort) => option(cohort, "weight", 1n, LARGEST));
  return {
    count: BigInt(cohorts.length),
    weight: sum(weights),
    attributes: kinds.flat().flatMap(({ attributes }) => attributes),
    kinds,
    at(ticket) {
      const [cohort] = shareOf(ticket, weights);
      return { cohort, asks: kinds[cohort] };
    },
  };
}

/** counts[j][i]: choices of j things from i on, and a digit below its weight for each. */
function countChoices(weights, order) {
  const counts = [Array(weights.length + 1).fill(1n)];
  for (let size = 0; size < order; size++) {
    const row = [0n];
    for (let place = weights.length; place--; ) row.unshift(row[0] + weights[place] * counts[size][place + 1]);
    counts.push(row);
  }
  return counts;
}

/** A digit has as many tickets as its thing is heavy. */
function choices(data, digits, heavy) {
  const most = Math.min(digits.length, MOST_BITS);
  const order = Number(option(data, "order", data.shape === "star" ? 2n : 1n, BigInt(most)));
  const tickets = digits.map((count, place) => count * heavy[place]);
  const [ranks, counts] = [countChoices(digits, order), countChoices(tickets, order)];
  const at = (ticket) => {
    const chosen = [];
    let [left, rank, place] = [ticket, 0n, 0];
    for (let rest = order; rest--; place++) {
      for (; left >= tickets[place] * counts[rest][place + 1]; place++) {
        left -= tickets[place] * counts[rest][place + 1];
        rank += digits[place] * ranks[rest][place + 1];
      }
      const digit = left / counts[rest][place + 1] / heavy[place];
      left %= counts[rest][place + 1];
      rank += digit * ranks[rest][place + 1];
      chosen.push([place, digit]);
    }
    return [rank, chosen];
  };
  return { order, count: ranks[order][0], weight: counts[order][0], at };
}

/** A cohort for each set of attributes, which reports its cell; a ticket is a cohort. */
function tables({ attributes, oracles }, schema, count, setAt) {
  const read = oracles.map(readOracle);
  const at = (ticket) => {
    const cell = cells({ attributes: setAt(ticket).map(([member]) => attributes[member]) }, schema);
    return { cohort: Number(ticket), asks: [ask(cell, read.find(({ size }) => size === cell.size))] };
  };
  return { count, weight: count, attributes, kinds: read.map((oracle) => [oracle]), at };
}

function subsets(data, schema) {
  readEpsilon(data.epsilon);
  const ones = data.attributes.map(() => 1n);
  const { at, count } = choices(data, ones, ones);
  return tables(data, schema, count, (ticket) => at(ticket)[1]);
}

/** How many ranks are passed over, how many are taken, and so on. */
function readRuns(runs, total) {
  const counts = runs.split(" ").map(BigInt);
  const isEach = counts.every((count, place) => count > 0n || (!place && !count)) && counts.length % 2 === 0;
  need(isEach && counts.join(" ") === runs && sum(counts) <= total, "plan: runs must be those of its views");
  need(sum(counts.filter((_, place) => place % 2)) <= MOST_VIEWS, "plan: its views are too many");
  const ranks = [];
  let rank = 0n;
  counts.forEach((count, place) => {
    for (let taken = 0n; place % 2 && taken < count; taken++) ranks.push(rank + taken);
    rank += count;
  });
  return ranks;
}

function views(data, schema) {
  const ones = data.attributes.map(() => 1n);
  let last = 0;
  const sets = data.blocks.flatMap((block) => {
    keys(block, "order,runs");
    const { at, count, order } = choices(block, ones, ones);
    need(order > last, "plan: views must be in order");
    last = order;
    return readRuns(block.runs, count).map((rank) => at(rank)[1]);
  });
  const family = tables(data, schema, BigInt(sets.length), (ticket) => sets[ticket]);
  const sizes = new Set(sets.map((_, ticket) => family.at(ticket).asks[0].size));
  need(sizes.size === data.oracles.length, "plan: its oracles are not those of its views");
  return family;
}

// for each bit, whether it multiplies the attribute at a place
const SHAPES = {
  parity: () => [() => true],
  corner: (order) => Array.from({ length: order }, (_, bit) => (place) => place === bit),
  star: (order) => Array.from({ length: order - 1 }, (_, bit) => (place) => !place || place === bit + 1),
};

function readBlock(data, masks, heavy) {
  keys(data, "shape,order,times,oracle");
  const block = choices(data, masks, heavy);
  const times = option(data, "times", 1n, LARGEST);
  const products = only("shape", data.shape, SHAPES)(block.order);
  return { ...block, times, products, oracle: readOracle(data.oracle) };
}

function signs({ attributes, weights, epsilon, blocks }, schema) {
  readEpsilon(epsilon);
  const masks = attributes.map((name) => fullMask(schema, name));
  keys(weights, Object.keys(attributes));
  const heavy = attributes.map((_, place) => option(weights, place, 1n, 1n << 20n));
  const parts = blocks.map((each) => readBlock(each, masks, heavy));
  const shares = parts.map(({ times, weight }) => times * weight);
  const counts = parts.map(({ count }) => count);
  return {
    count: sum(counts),
    weight: sum(shares),
    attributes,
    kinds: parts.map(({ oracle }) => [oracle]),
    at(ticket) {
      const [number, left] = shareOf(ticket, shares);
      const { products, times, at, oracle } = parts[number];
      const [rank, chosen] = at(left / times);
      const rows = products.map((has) => chosen.map(([, digit], slot) => (has(slot) ? digit + 1n : 0n)));
      const names = chosen.map(([member]) => attributes[member]);
      const asks = [ask(masked(names, rows), oracle)];
      return { cohort: Number(sum(counts.slice(0, number)) + rank), asks };
    },
  };
}

const FAMILIES = {
  listed: [listed, "cohorts"],
  together: [listed, "cohorts"],
  subsets: [subsets, "attributes,order,oracle,epsilon,oracles"],
  views: [views, "attributes,blocks,oracles"],
  signs: [signs, "attributes,weights,epsilon,blocks"],
};

export function readCohorts(data, schema) {
  const [build, known] = only("family", data.family, FAMILIES);
  keys(data, `family,${known}`);
  const family = build(data, schema);
  need(family.weight > 0n && family.count < 1n << 32n, "plan: it has no cohorts, or too many");
  const [form = "code", ...others] = new Set(family.kinds.flat().map((ask) => ask.form));
  need(!others.length, "plan: its asks must read attributes in one form");
  const attributes = [...new Set(family.attributes)];
  need(attributes.every((name) => schema.has(name)), "plan: its asks read attributes that are not in its schema");
  return { ...family, form, attributes };
}
