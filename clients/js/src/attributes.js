// Attributes and records: what a person may answer, and the integer code each answer has.

import { LARGEST, sha256, toInteger, whole } from "./bytes.js";
import { need } from "./errors.js";

const MOST_LISTED = 4096n; // labels that a page may show
const YES_NO = { false: 0n, true: 1n, no: 0n, yes: 1n, 0: 0n, 1: 1n };
const bounded = (value) => whole("plan: values", value, -LARGEST, LARGEST);

/** The integer that a value is, or undefined; text of one will do. */
function integer(value) {
  const fits = typeof value === "string" ? /^\s*[+-]?\d{1,40}\s*$/.test(value) : Number.isInteger(value);
  const found = fits ? BigInt(value) : LARGEST + 1n;
  return found > LARGEST || found < -LARGEST ? undefined : found;
}

const labels = (size, label) =>
  size > MOST_LISTED ? null : Array.from({ length: Number(size) }, (_, code) => label(BigInt(code)));

function boolean() {
  const code = (value) => {
    const key = typeof value === "object" ? "" : String(value).trim().toLowerCase();
    return Object.hasOwn(YES_NO, key) ? YES_NO[key] : undefined;
  };
  return { size: 2n, code, labels: [false, true] };
}

function range(ends) {
  const [first, end, step] = ends.map(bounded);
  const size = (end - first + step - (step > 0n ? 1n : -1n)) / step;
  const code = (value) => {
    const number = integer(value);
    return number === undefined || (number - first) % step ? undefined : (number - first) / step;
  };
  return { size, code, labels: labels(size, (place) => Number(first + place * step)) };
}

function categorical({ range: ends, values }) {
  if (ends) return range(ends);
  // true is 1 and false is 0, where the list has them at all
  const key = (value) => (typeof value === "boolean" ? Number(value) : value);
  const codes = new Map(values.map((label, code) => [key(label), BigInt(code)]));
  need(codes.size === values.length, "plan: values must be different");
  for (const label of codes.keys()) if (typeof label !== "string") bounded(label);
  const booleans = values.some((label) => typeof label === "boolean");
  const code = (value) =>
    typeof value === "boolean" && !booleans ? undefined : (codes.get(key(value)) ?? codes.get(Number(integer(value))));
  return { size: BigInt(values.length), code, labels: values };
}

function ordinal({ low, high, bins }) {
  const first = bounded(low);
  const count = bounded(high) - first + 1n;
  const size = bins === null ? count : whole("plan: bins", bins, 2n, count);
  const code = (value) => {
    const offset = (integer(value) ?? first - 1n) - first;
    return offset < 0n || offset >= count ? undefined : (offset * size) / count;
  };
  const start = (place) => first + (place * count + size - 1n) / size;
  const label = (place) => {
    const [from, to] = [start(place), start(place + 1n) - 1n];
    return bins === null ? Number(from) : from === to ? `${from}` : `${from} to ${to}`;
  };
  return { size, code, labels: labels(size, label) };
}

function text({ bytes }) {
  const most = whole("plan: bytes", bytes, 1n, LARGEST);
  const code = async (value) => {
    if (typeof value !== "string" || /\p{Surrogate}/u.test(value)) return undefined;
    const data = new TextEncoder().encode(value);
    return data.length > most ? undefined : toInteger((await sha256(data)).subarray(0, 8));
  };
  return { size: 1n << 64n, code, labels: null };
}

/** A set; no question reads it whole. */
const items = (options) => ({ ...categorical(options), code: () => undefined });

const KINDS = { boolean, categorical, ordinal, text, items };

function rule({ kind, size, low, high, bytes }) {
  if (kind === "ordinal") return `value is outside the schema's range (${low} to ${high}, whole numbers)`;
  if (kind === "text") return `value must be text of at most ${bytes} bytes of UTF-8`;
  return `value is not one of the schema's ${size} values`;
}

export function readSchema(data) {
  const schema = new Map();
  for (const [name, options] of Object.entries(data)) {
    need(Object.hasOwn(KINDS, options.kind), `plan: attribute '${name}' is of an unknown kind`);
    const attribute = { ...options, name, ...KINDS[options.kind](options) };
    need(attribute.size > 1n, `plan: attribute '${name}' must have at least 2 values`);
    schema.set(name, attribute);
  }
  return schema;
}

/** A record as codes of the attributes in `names`; others may be missing. */
export async function encode(schema, record, names) {
  for (const name of Object.keys(record)) need(schema.has(name), `attribute '${name}' is not in the schema`);
  const codes = new Map();
  for (const name of names) {
    need(Object.hasOwn(record, name), `attribute '${name}' is missing from the record`);
    const attribute = schema.get(name);
    const code = await attribute.code(record[name]);
    need(code >= 0n && code < attribute.size, `attribute '${name}': ${rule(attribute)}`);
    codes.set(name, code);
  }
  return codes;
}
