import { bitLength, flag, LARGEST, option, sha256, sorted, toInteger, utf8, whole } from "./bytes.js";
import { fixedPoint } from "./columns.js";
import { keys, need, only } from "./errors.js";

const MOST_LISTED = 4096n; // labels that a page may show
const YES_NO = { false: 0n, true: 1n, no: 0n, yes: 1n, 0: 0n, 1: 1n };
const bounded = (value) => whole("plan: values", value, -LARGEST, LARGEST);

const labels = (size, label) =>
  size > MOST_LISTED ? null : Array.from({ length: Number(size) }, (_, code) => label(BigInt(code)));

const boolean = () => ({
  size: 2n,
  code: (value) => only("value", typeof value === "object" ? "" : String(value).trim().toLowerCase(), YES_NO),
  labels: [false, true],
});

function range(ends) {
  keys(ends, "0,1,2");
  const [first, end, step] = ends.map((_, place) => option(ends, place, -LARGEST, LARGEST));
  const size = (end - first + step - (step > 0n ? 1n : -1n)) / step;
  const code = (value) => {
    const offset = bounded(value) - first;
    need(!(offset % step), "value");
    return whole("value", offset / step, 0n, size - 1n);
  };
  return { size, code, labels: labels(size, (place) => Number(first + place * step)) };
}

function categorical({ range: ends, values }) {
  if (ends) return range(ends);
  const booleans = values.some((label) => typeof label === "boolean");
  // true is 1 and false is 0, if the list has them
  const key = (value) => bounded(booleans && typeof value === "boolean" ? Number(value) : value);
  const codes = new Map(values.map((label, code) => [typeof label === "string" ? label : key(label), BigInt(code)]));
  need(codes.size === values.length, "plan: values must be different");
  const code = (value) => {
    const found = codes.get(value) ?? codes.get(key(value));
    need(found >= 0n, "value");
    return found;
  };
  return { size: BigInt(values.length), code, labels: values };
}

function ordinal(options) {
  const { low, high, bins } = options;
  const [first, last] = ["low", "high"].map((end) => option(options, end, -LARGEST, LARGEST));
  const count = last - first + 1n;
  const least = (place) => (place ? bounded(bins[place - 1]) + 1n : first);
  const listed =
    Array.isArray(bins) && bins.map((_, place) => option(bins, place, least(place), place ? last : first));
  const size = listed ? BigInt(listed.length) : bins === null ? count : option(options, "bins", 2n, count);
  const start = (place) => (listed ? (listed[place] ?? last + 1n) : first + (place * count + size - 1n) / size);
  const label = (place) => {
    const [from, to] = [start(place), start(place + 1n) - 1n];
    return bins === null ? Number(from) : from === to ? `${from}` : `${from} to ${to}`;
  };
  return {
    size,
    code: (value) => {
      const number = whole("value", value, first, last);
      return listed ? BigInt(listed.filter((from) => from <= number).length - 1) : ((number - first) * size) / count;
    },
    labels: labels(size, label),
    rule: `value must be a whole number from ${low} to ${high}`,
  };
}

function integer(options) {
  const size = 1n << option(options, "bits", 1n, 128n);
  return {
    size,
    code: (value) => whole("value", value, 0n, size - 1n),
    labels: labels(size, Number),
    rule: `value must be a whole number of at most ${options.bits} bits`,
  };
}

function text(options) {
  const { alphabet, other, longer } = options;
  const most = Number(option(options, "bytes", 1n, LARGEST));
  const letters = typeof alphabet === "string" ? [...alphabet] : undefined;
  const parts = [[alphabet, letters], [other, letters?.includes(other)], [longer, longer === "cut"]];
  need(parts.every(([part, isRight]) => part === undefined || isRight), "plan: text has an alphabet, other or cut");
  const known = (letter) => (letters.includes(letter) ? letter : (other ?? "\ud800")); // which no text may have
  const fitted = (value) => {
    need(typeof value === "string", "value");
    const all = letters ? Array.from(value, known).join("") : value;
    const { read } = new TextEncoder().encodeInto(all, new Uint8Array(Math.min(most, 3 * all.length)));
    need(!/\p{Surrogate}/u.test(all) && (read === all.length || longer === "cut"), "value");
    return all.slice(0, read); // never half a character
  };
  const [width, count] = letters
    ? [bitLength(letters.length), Math.floor(most / Math.min(...letters.map((letter) => utf8(letter).length)))]
    : [8, most];
  const spelling = (value) => {
    const all = fitted(value);
    need(!all.includes("\0"), "value"); // the end of a spelling
    const symbols = letters ? Array.from(all, (letter) => letters.indexOf(letter) + 1) : [...utf8(all)];
    const digits = symbols.map((symbol) => symbol.toString(2).padStart(width, "0"));
    return BigInt(`0b0${digits.join("").padEnd(width * count, "0")}`);
  };
  const rule = `value must be text${longer === "cut" ? "" : ` of at most ${most} bytes of UTF-8`}`;
  return {
    size: 1n << 64n,
    code: async (value) => toInteger((await sha256(utf8(fitted(value)))).subarray(0, 8)),
    spelling,
    fitted,
    bits: width * count,
    labels: null,
    rule: letters && !other ? `${rule} of the schema's alphabet` : rule,
  };
}

function items(options) {
  const { code, ...each } = categorical(options);
  const split = (value) => (value.trim() ? value.split(";").map((part) => part.trim()) : []);
  const members = (value, isStrict) => {
    const known = (each) => {
      try {
        return [code(each)];
      } catch (wrong) {
        if (isStrict) throw wrong;
        return []; // what the schema does not list is left out
      }
    };
    return sorted((typeof value === "string" ? split(value) : [...value]).flatMap(known));
  };
  return { ...each, members, rule: `value must be a set of the schema's ${each.size} values` };
}

const LIST = "(values|range)";
const OTHER = "(,other)?"; // the value that stands for those which the schema lacks
const KINDS = {
  boolean: [boolean, OTHER],
  categorical: [categorical, `,${LIST}${OTHER}`],
  ordinal: [ordinal, `,low,high,bins${OTHER}`],
  integer: [integer, `,bits${OTHER}`],
  text: [text, `,bytes(,alphabet)?${OTHER}(,longer)?`],
  items: [items, `,${LIST}`],
  "fixed-point": [fixedPoint, ",low,high,decimals"],
};

/** The code of `other`, which is written as values are. */
function otherCode({ kind, other, values }, code) {
  if (other === undefined || kind === "text") return undefined;
  const isValue = values?.includes(other) ?? typeof other === (kind === "boolean" ? kind : "number");
  need(isValue, "plan: other must be one of the values");
  return code(other);
}

/** No whole number, which JSON.parse moves, and nothing that looks like another name: single spaces, NFC, all seen. */
const UNPLAIN = /^(0|[1-9]\d*)$|[\p{Cc}\p{Cf}\p{DI}\u2800\uFFFC\u{13441}\u{13442}\u{16FE4}\u{1D159}]/u;
const isPlain = (name) => !UNPLAIN.test(name) && name === name.trim().split(/\s+/).join(" ").normalize();

export function readSchema(data) {
  const schema = new Map();
  for (const [name, options] of Object.entries(data)) {
    need(isPlain(name), "plan: an attribute's name must be plain text, and no whole number");
    const [build, known] = only("kind", options.kind, KINDS);
    keys(options, `kind,sensitive${known}`);
    flag(options, "sensitive");
    const { code, spelling, members, fitted, scaled, first, ...kind } = build(options);
    const { size } = kind;
    need(size > 1n, `plan: attribute '${name}' must have at least 2 values`);
    const bits = bitLength(size - 1n);
    const rule = `value is not one of the schema's ${size} values`;
    const other = otherCode(options, code);
    const limits = { code: size, spelling: spelling ? 1n << BigInt(kind.bits) : size };
    const read = { code, spelling: spelling ?? code, members, other, limits, fitted, scaled, first };
    schema.set(name, { ...options, name, bits, rule, ...kind, read });
  }
  return schema;
}

/** Of all that any cohort is asked, so that a record does not tell the cohort; what is not valid is left out. */
export async function encode({ schema, cohorts: { attributes, form } }, record, isStrict) {
  need(record && typeof record === "object", "record must be an object of values by attribute");
  for (const name of Object.keys(record)) need(!isStrict || schema.has(name), `attribute '${name}' is not in the schema`);
  const found = new Map();
  for (const name of attributes) {
    const isThere = Object.hasOwn(record, name);
    need(isThere || !isStrict, `attribute '${name}' is missing from the record`);
    const { read, rule } = schema.get(name);
    try {
      if (isThere) found.set(name, await read[form](record[name], isStrict));
    } catch {
      need(!isStrict, `attribute '${name}': ${rule}`); // not a word of the value
    }
  }
  return found;
}

/** What is reported in place of what is not valid: silence would tell. */
export function substitute({ schema, cohorts: { attributes, form } }, found, entropy) {
  for (const name of attributes.filter((each) => !found.has(each))) {
    const { other, limits } = schema.get(name).read;
    found.set(name, form === "members" ? [] : (other ?? entropy.below(limits[form])));
  }
}
