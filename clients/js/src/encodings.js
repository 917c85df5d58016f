import { bitLength, flag, LARGEST, option, parity } from "./bytes.js";
import { keys, need, only } from "./errors.js";
import { permuted, tagOf } from "./hashes.js";
import { promised, readEpsilon, SLACK } from "./oracles.js";

export const fullMask = (schema, name) => (1n << BigInt(bitLength(schema.get(name).size - 1n))) - 1n;

export function cells({ attributes }, schema) {
  const sizes = attributes.map((name) => schema.get(name).size);
  return {
    attributes,
    size: sizes.reduce((total, size) => total * size),
    encode: (codes) => attributes.reduce((cell, name, place) => cell * sizes[place] + codes.get(name), 0n),
  };
}

function parities({ attributes, products }, schema) {
  const masks = products.map((row) => {
    keys(row, Object.keys(attributes));
    return attributes.map((name, place) => option(row, place, 0n, fullMask(schema, name)));
  });
  return masked(attributes, masks);
}

/** The interval of a code is (code + shift) div width. */
function grid({ attributes, widths, shifts }, schema) {
  for (const parts of [widths, shifts]) keys(parts, Object.keys(attributes));
  const axes = attributes.map((name, place) => {
    const width = option(widths, place, 1n, LARGEST);
    const shift = option(shifts, place, 0n, width - 1n);
    const count = (schema.get(name).size + shift + width - 1n) / width;
    need(count > 1n && attributes.indexOf(name) === place, "plan: a grid must cut each of its attributes, once");
    return { name, width, shift, count };
  });
  return {
    attributes,
    size: axes.map((axis) => axis.count).reduce((total, count) => total * count),
    encode: (codes) =>
      axes.reduce((cell, { name, width, shift, count }) => cell * count + (codes.get(name) + shift) / width, 0n),
  };
}

/** The interval of a code; cuts are the codes at which all but the first begin. */
function intervals({ attribute, cuts }, schema) {
  const most = schema.get(attribute).size - 1n;
  need(Array.isArray(cuts) && cuts.length, "plan: intervals must be two or more");
  const begin = [];
  for (const place of cuts.keys()) begin.push(option(cuts, place, (begin.at(-1) ?? 0n) + 1n, most < LARGEST ? most : LARGEST));
  return {
    attributes: [attribute],
    size: BigInt(cuts.length) + 1n,
    encode: (codes) => BigInt(begin.filter((cut) => cut <= codes.get(attribute)).length),
  };
}

export function masked(attributes, masks) {
  const sign = (row, codes) => row.reduce((odd, mask, place) => odd ^ parity(mask & codes.get(attributes[place])), 0n);
  return {
    attributes,
    size: 1n << BigInt(masks.length),
    encode: (codes) => masks.reduce((value, row) => (value << 1n) | sign(row, codes), 0n),
  };
}

const ofOne = (form, build) => (data, schema) => {
  const { encode, ...made } = build(data, schema.get(data.attribute));
  const attributes = [data.attribute];
  return { ...made, form, attributes, encode: (read, entropy) => encode(read.get(data.attribute), entropy) };
};

const cut = (spelling, bits, start, count) => BigInt.asUintN(Number(count), spelling >> (bits - start - count));

const window = ofOne("spelling", (data, attribute) => {
  const bits = BigInt(attribute.bits);
  const start = option(data, "start", 0n, bits - 1n);
  const fresh = option(data, "fresh", 1n, bits - start);
  const tag = option(data, "tag", 0n, 32n);
  const tagged = option(data, "tagged", 0n, bits);
  flag(data, "scrambled");
  return {
    size: 1n << (tag + fresh),
    encode(spelling) {
      const number = data.scrambled ? permuted(spelling, bits) : spelling;
      return (tagOf(number >> (bits - tagged), tagged, tag) << fresh) | cut(number, bits, start, fresh);
    },
  };
});

const extensions = ofOne("spelling", (data, attribute) => {
  const bits = BigInt(attribute.bits);
  const fresh = option(data, "fresh", 1n, 16n);
  const prefixes = data.prefixes.map((prefix) => {
    keys(prefix, "0,1");
    const length = option(prefix, 0, 0n, bits - fresh);
    return [length, option(prefix, 1, 0n, (1n << length) - 1n, String)];
  });
  const size = (BigInt(prefixes.length) << fresh) + 1n;
  return {
    size,
    encode(spelling) {
      const place = prefixes.findIndex(([length, number]) => spelling >> (bits - length) === number);
      return place < 0 ? size - 1n : (BigInt(place) << fresh) | cut(spelling, bits, prefixes[place][0], fresh);
    },
  };
});

/** How many candidates there are, and the places of those that a set holds. */
function holding({ candidates }, { size }) {
  if (candidates === null) return [size, (members) => members];
  const listed = candidates.map((items) => items.map((_, place) => option(items, place, 0n, size - 1n)));
  const places = (members) =>
    listed.flatMap((items, place) => (items.every((item) => members.includes(item)) ? [BigInt(place)] : []));
  return [BigInt(listed.length), places];
}

export const ratioOf = ([top, bottom]) => Number(top) / Number(bottom);
const gcd = (one, two) => (two ? gcd(two, one % two) : one);

/** Two integers, as exact as they are written. */
export function readDelta(text) {
  const delta = (/^[1-9]\d{0,15}\/[1-9]\d{0,15}$/.test(text) ? text : "0/0").split("/").map(BigInt);
  const [top, bottom] = delta;
  need(top < bottom && bottom <= LARGEST && gcd(top, bottom) === 1n, "plan: delta must be a fraction in lowest terms");
  return delta;
}

/** What a sampled set costs, and the chance that it costs more. */
function amplified(data, length, { name, ratio, buckets }) {
  if (data.epsilon === null) {
    need(data.delta === null, "plan: delta must stand beside an epsilon");
    return {};
  }
  const priced = readEpsilon(data.epsilon);
  const isPure = data.delta === null;
  need(name === (isPure ? "grr" : "olh-seeded"), `plan: '${name}' cannot be amplified`);
  const delta = isPure ? undefined : readDelta(data.delta);
  let alike = 1;
  if (delta) {
    // g = ceil(l/l' (e^eps - 1) + 2): the oracle's own if floats cannot tell
    const own = Number(buckets);
    const size = () => {
      const exact = (length / alike) * Math.expm1(priced.epsilon) + 2;
      return Math.abs(own - exact - 0.5) < 0.5 + SLACK ? own : Math.ceil(exact);
    };
    // the least l' with C(l, l' + 1) / g^l' <= delta, by logarithms
    const rare = Math.log(ratioOf(delta)) + SLACK;
    let ways = Math.log((length * (length - 1)) / 2);
    for (; alike < length && ways - alike * Math.log(size()) > rare; alike++) {
      ways += Math.log((length - alike - 1) / (alike + 2));
    }
    need(own === size(), "plan: the hash of a padded set is not the one that its delta needs");
  }
  promised(name, 1 + (alike / length) * (ratio - 1), priced.epsilon);
  return { ...priced, delta };
}

const padded = ofOne("members", (data, attribute) => {
  const length = option(data, "length", 1n, 1n << 16n);
  const [count, places] = holding(data, attribute);
  return {
    size: count + length,
    fit: (oracle) => amplified(data, Number(length), oracle),
    encode(members, entropy) {
      const held = places(members);
      const place = entropy.below(held.length > length ? BigInt(held.length) : length);
      return held[place] ?? count + entropy.below(length);
    },
  };
});

const held = ofOne("members", (data, attribute) => {
  const most = option(data, "most", 1n, 1n << 16n);
  const [, places] = holding(data, attribute);
  return { size: most + 1n, encode: (members) => BigInt(Math.min(places(members).length, Number(most))) };
});

const drawn = ofOne("members", (data, attribute) => {
  const length = option(data, "length", 1n, 1n << 16n);
  const [size, places] = holding(data, attribute);
  return {
    size,
    fit: (oracle) => need(oracle.length === length, "plan: a drawn set needs olh-sets of its length"),
    encode(members, entropy) {
      const held = places(members);
      if (held.length <= length) return held;
      const kept = entropy.subset(held.length, Number(length));
      return held.filter((_, place) => (kept >> BigInt(place)) & 1n);
    },
  };
});

const OF_SET = "attribute,candidates";
const ENCODINGS = {
  cells: [cells, "attributes"],
  parities: [parities, "attributes,products"],
  grid: [grid, "attributes,widths,shifts"],
  intervals: [intervals, "attribute,cuts"],
  window: [window, "attribute,start,fresh,tag,tagged,scrambled"],
  extensions: [extensions, "attribute,fresh,prefixes"],
  padded: [padded, `${OF_SET},length,epsilon,delta`],
  held: [held, `${OF_SET},most`],
  drawn: [drawn, `${OF_SET},length`],
};

export function readEncoding(data, schema) {
  const [build, known] = only("encoding", data.kind, ENCODINGS);
  keys(data, `kind,${known}`);
  return build(data, schema);
}
