// A report in words: what its cohort was asked, and what it says. Read off the plan's public JSON (docs/wire.md).

import { say } from "./language.js";

const MOST = 12; // values that are named
const bits = (number) => (number ? number.toString(2).length : 0);
const isOdd = (number) => number.toString(2).replaceAll("0", "").length % 2 === 1;

/** Choices of `order` things, each with a digit below its weight: the members and digits of one by its rank. */
function unranked(rank, weights, order) {
  const counts = [Array(weights.length + 1).fill(1n)];
  for (let size = 0; size < order; size++) {
    const row = [0n];
    for (let place = weights.length; place--; ) row.unshift(row[0] + weights[place] * counts[size][place + 1]);
    counts.push(row);
  }
  const total = counts[order][0];
  if (rank >= total) return { total };
  const [members, digits] = [[], []];
  let [left, place] = [rank, 0];
  for (let rest = order; rest--; place++) {
    for (; left >= weights[place] * counts[rest][place + 1]; place++) left -= weights[place] * counts[rest][place + 1];
    members.push(place);
    digits.push(left / counts[rest][place + 1]);
    left %= counts[rest][place + 1];
  }
  return { total, members, digits };
}

const SHAPES = {
  parity: (masks) => [masks],
  corner: (masks) => masks.map((mask, place) => masks.map((_, other) => (other === place ? mask : 0n))),
  star: (masks) => masks.slice(1).map((mask, place) => masks.map((own, other) => (!other || other === place + 1 ? own : 0n))),
};

function signsAsk({ attributes, blocks }, cohort, sizes) {
  const most = attributes.map((name) => (1n << BigInt(bits(sizes.get(name) - 1n))) - 1n);
  let left = BigInt(cohort);
  for (const { shape, order, oracle } of blocks) {
    const { total, members, digits } = unranked(left, most, order);
    if (members) {
      const products = SHAPES[shape](digits.map((digit) => digit + 1n));
      return { names: members.map((place) => attributes[place]), products, oracle };
    }
    left -= total;
  }
  throw new Error("The report does not fit the plan");
}

/** The order of a cohort's set among blocks of views, and its rank among all sets of that order. */
function viewOf(blocks, cohort) {
  let left = BigInt(cohort);
  for (const { order, runs } of blocks) {
    let rank = 0n;
    for (const [place, count] of runs.split(" ").map(BigInt).entries()) {
      if (place % 2 && left < count) return { order, rank: rank + left };
      if (place % 2) left -= count;
      rank += count;
    }
  }
  throw new Error("The report does not fit the plan");
}

/** A cohort's asks: the attributes, the masks of each sign that mixes them (none for plain cells), the oracle. */
export function asksOf({ cohorts: family }, cohort, sizes) {
  if (family.family === "signs") return [signsAsk(family, cohort, sizes)];
  if (family.family === "subsets" || family.family === "views") {
    const { attributes, oracles } = family;
    const { order, rank } = family.blocks ? viewOf(family.blocks, cohort) : { order: family.order, rank: BigInt(cohort) };
    const { members } = unranked(rank, attributes.map(() => 1n), order);
    const names = members.map((place) => attributes[place]);
    const size = names.reduce((cells, name) => cells * sizes.get(name), 1n);
    return [{ names, products: null, oracle: oracles.find((oracle) => BigInt(oracle.size) === size) }];
  }
  return family.cohorts[cohort].asks.map(({ encoding, oracle }) => ({
    names: encoding.attributes ?? [encoding.attribute],
    products: encoding.products?.map((row) => row.map(BigInt)) ?? null,
    part: PARTS[encoding.kind]?.(encoding),
    oracle,
  }));
}

/** Of what is popular a report tells a part: what was asked, and what a value of it says. */
const PARTS = {
  window: ({ attribute }) => ({ asked: say("part_of", { name: attribute }), value: (code) => say("part_number", { code }) }),
  extensions: ({ attribute }) => ({ asked: say("goes_on", { name: attribute }), value: (code) => say("ending", { code }) }),
  held: ({ attribute, most }) => ({
    asked: say("how_many", { name: attribute }),
    value: (code) => (code === BigInt(most) ? say("or_more", { count: code }) : `${code}`),
  }),
  padded: (encoding) => ({ asked: say("one_thing", { name: encoding.attribute }), value: thing(encoding) }),
  drawn: (encoding) => ({ asked: say("some_things", { name: encoding.attribute }), value: thing(encoding) }),
  grid: (encoding) => (encoding.widths.some((width) => BigInt(width) > 1n) ? groups(encoding) : undefined),
  intervals: ({ attribute, cuts }) => {
    const begin = [0n, ...cuts.map(BigInt)];
    const value = (code, attributes) => groupWords(attribute, begin[code], begin[Number(code) + 1] ?? attributes.get(attribute).size, attributes);
    return { asked: say("in_groups", { name: attribute }), value };
  },
};

/** Cells of a grid: each attribute in groups of so many values, the last attribute varying fastest. */
function groups({ attributes: names, widths, shifts }) {
  const parts = names.map((name, place) => ({ name, width: BigInt(widths[place]), shift: BigInt(shifts[place]) }));
  const value = (code, attributes) => {
    let left = code;
    const words = [];
    for (const { name, width, shift } of [...parts].reverse()) {
      const { size } = attributes.get(name);
      const count = (size + shift + width - 1n) / width;
      const start = (left % count) * width - shift;
      left /= count;
      words.unshift(groupWords(name, start < 0n ? 0n : start, start + width < size ? start + width : size, attributes));
    }
    return words.join(", ");
  };
  const asked = parts.map(({ name, width }) => (width > 1n ? say("in_groups", { name }) : name));
  return { asked: asked.length > 1 ? say("together", { names: joined(asked, "and") }) : asked[0], value };
}

/** For instance "age: 18 to 42": the values whose codes are from `start` up to `end`, which is left out. */
function groupWords(name, start, end, attributes) {
  const { labels } = attributes.get(name);
  const [first, last] = [start, end - 1n].map((code) => (labels ? spoken(labels[code]) : say("number", { code })));
  if (first === last) return `${name}: ${first}`;
  return `${name}: ${typeof labels?.[start] === "string" ? `${first} … ${last}` : say("range", { first, last })}`;
}

/** An item, or a set of items, by its code; what pads a short set is nothing. */
const thing = ({ attribute, candidates }) => (code, attributes) => {
  const { labels, size } = attributes.get(attribute);
  const members = candidates ? candidates[code] : code < size ? [code] : undefined;
  return members ? members.map((member) => spoken(labels?.[member] ?? say("number", { code: member }))).reduce((first, second) => say("with", { first, second })) : say("nothing");
};

const joined = (words, last) => (words.length < 2 ? words.join() : say(last, { first: words.slice(0, -1).join(", "), second: words.at(-1) }));
const spoken = (label) => (label === true ? say("yes") : label === false ? say("no") : `${label}`);

/** For instance "drinks is weekly or daily": the values whose code has an odd number of the mask's bits. */
function half(name, mask, { size, labels }) {
  if (!labels || size > BigInt(2 * MOST)) return say("half", { name });
  const values = labels.filter((_, code) => isOdd(BigInt(code) & mask));
  return say("is", { name, values: joined(values.map(spoken), "or") });
}

/** One sign as a question that yes or no answers. */
function parityWords(names, masks, attributes) {
  const parts = names.flatMap((name, place) => (masks[place] ? [half(name, masks[place], attributes.get(name))] : []));
  if (parts.length === 1) return say("whether", { part: parts[0] });
  if (parts.length === 2) return say("one_of_two", { parts: parts.join("; ") });
  return say("odd_number", { parts: parts.join("; ") });
}

/** What was asked, in words. */
export function askedWords(asks, attributes) {
  const words = asks.flatMap(({ names, products, part }) => {
    if (part) return part.asked;
    if (products) return products.map((masks) => parityWords(names, masks, attributes));
    return names.length > 1 ? say("together", { names: joined(names, "and") }) : names[0];
  });
  return words.reduce((first, second) => say("then", { first, second }));
}

/** The labels of a cell, for instance "smoker: yes, age: 18 to 27". */
function cellWords(names, code, attributes) {
  let left = code;
  const words = [];
  for (const name of [...names].reverse()) {
    const { size, labels } = attributes.get(name);
    const place = left % size;
    left /= size;
    words.unshift(`${name}: ${labels ? spoken(labels[place]) : say("number", { code: place })}`);
  }
  return words.join(", ");
}

/** The bits of a value, the first one highest, as answers. */
const signWords = (number, count) =>
  Array.from({ length: count }, (_, place) => ((number >> BigInt(count - 1 - place)) & 1n ? say("yes") : say("no"))).join(", ");

const DIRECT = new Set(["rr", "grr"]);
const SETS = new Set(["sue", "oue", "the", "ss"]);

function saying({ names, products, part, oracle }, number, attributes) {
  const value = (code) => (part ? part.value(code, attributes) : products ? signWords(code, products.length) : cellWords(names, code, attributes));
  if (DIRECT.has(oracle.name)) {
    const times = Math.round((100 * Number(BigInt(oracle.thresholds.truth))) / 2 ** 64);
    return say("said", { value: value(number), times });
  }
  if (SETS.has(oracle.name)) {
    const said = [];
    for (let code = 0n; code < BigInt(oracle.size); code++) if ((number >> code) & 1n) said.push(value(code));
    const values = said.slice(0, MOST).join("; ") || say("none");
    return say("said_set", { values: said.length > MOST ? say("more", { values, count: said.length - MOST }) : values });
  }
  return say("said_bits");
}

/** What the report says, in words, ask by ask. */
export function saidWords(asks, payload, attributes) {
  let start = 0;
  return asks.map((ask) => {
    const end = start + Math.ceil(ask.oracle.bits / 8);
    const number = payload.slice(start, end).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    start = end;
    return saying(ask, number, attributes);
  });
}
