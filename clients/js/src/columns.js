// Public columns: attributes that are not sensitive and leave in clear, as the plan says.

import { bitLength, joined, LARGEST, toBytes, utf8 } from "./bytes.js";
import { need } from "./errors.js";

const RESERVED = ["id", "cohort", "payload"]; // columns that every table of reports has
const MOST_TEXT = 1024;

/** In as many bytes as the numbers below `size` need. */
const packed = (place, size) => toBytes(place, Math.ceil(bitLength(size - 1n) / 8));

const decimal = (number, decimals) => {
  const digits = `${number < 0n ? -number : number}`.padStart(decimals + 1, "0");
  const part = decimals ? `.${digits.slice(-decimals)}` : "";
  return `${number < 0n ? "-" : ""}${digits.slice(0, digits.length - decimals)}${part}`;
};

/** A decimal times 10^decimals, if that is whole: nothing is rounded. */
function scaled(value, decimals) {
  const isNumber = typeof value === "number";
  const text = isNumber ? value.toFixed(decimals) : value;
  need(!isNumber || Number(text) === value, "value");
  need(["string", "bigint"].includes(typeof text), "value");
  const found = /^[ \t\n\r\f\v]*([+-]?)([0-9]{1,40})(?:\.([0-9]{1,40}))?[ \t\n\r\f\v]*$/.exec(text);
  const part = (found?.[3] ?? "").replace(/0+$/, "");
  need(found && part.length <= decimals, "value");
  const number = BigInt(found[2] + part.padEnd(decimals, "0"));
  return found[1] === "-" ? -number : number;
}

/** Kind of attribute: a decimal of a fixed-point scale, which only ever leaves in clear. */
export function fixedPoint({ sensitive, low, high, decimals }) {
  need(sensitive === false, "plan: a fixed-point number must not be sensitive");
  need(Number.isInteger(decimals) && decimals >= 0 && decimals <= 9, "plan: decimals must be 0 to 9");
  const ends = [low, high].map((end) => {
    const number = scaled(end, decimals);
    need(decimal(number, decimals) === end, "plan: a decimal must be written as sottovoce writes it");
    need(number <= LARGEST && -number <= LARGEST, "plan: decimals must lie within 2^53 when scaled");
    return number;
  });
  const inRange = (value) => {
    const number = scaled(value, decimals);
    need(number >= ends[0] && number <= ends[1], "value");
    return number;
  };
  return {
    size: ends[1] - ends[0] + 1n,
    scaled: inRange,
    first: ends[0],
    labels: null,
    rule: `value must be a decimal from ${low} to ${high} of at most ${decimals} digits after the point`,
  };
}

function listed({ values, range, size, read }) {
  const label = values ? (code) => values[code] : range ? (code) => range[0] + Number(code) * range[2] : Boolean;
  const isOneType = !values || values.every((each) => typeof each === typeof values[0]);
  need(isOneType, "plan: values must be of one type in a public column");
  return (value) => {
    const code = read.code(value);
    return { json: label(Number(code)), bytes: packed(code, size) };
  };
}

/** What becomes of a value: what JSON says of it, and its bytes. */
const KINDS = {
  boolean: listed,
  categorical: listed,
  ordinal: ({ low, high, read }) => (value) => {
    read.code(value);
    const number = BigInt(value);
    return { json: Number(number), bytes: packed(number - BigInt(low), BigInt(high) - BigInt(low) + 1n) };
  },
  integer({ bits, size, read }) {
    need(bits <= 53, "plan: a public integer must have at most 53 bits");
    return (value) => {
      const code = read.code(value);
      return { json: Number(code), bytes: packed(code, size) };
    };
  },
  text({ bytes: most, read }) {
    need(most <= MOST_TEXT, `plan: public text must have at most ${MOST_TEXT} bytes`);
    return (value) => {
      const json = read.fitted(value);
      const data = utf8(json);
      return { json, bytes: joined(packed(BigInt(data.length), BigInt(most) + 1n), data) };
    };
  },
  "fixed-point": ({ decimals, size, read }) => (value) => {
    const number = read.scaled(value);
    return { json: decimal(number, decimals), bytes: packed(number - read.first, size) };
  },
};

/** The public columns of a plan, in its order: each by its name, and how a record's value is read. */
export function readColumns(names, schema) {
  need(Array.isArray(names), "plan: public must be a list of names");
  return names.map((name, place) => {
    need(typeof name === "string" && schema.has(name), "plan: a public attribute is not in the schema");
    need(!names.slice(0, place).includes(name), `plan: public attribute '${name}' must be named once`);
    const attribute = schema.get(name);
    need(!attribute.sensitive, `plan: attribute '${name}' is sensitive, and only ever leaves as a whisper`);
    need(!RESERVED.includes(name.toLowerCase()), `plan: a public attribute must not be called '${name}'`);
    need(Object.hasOwn(KINDS, attribute.kind), `plan: attribute '${name}' cannot travel in clear`);
    return { name, rule: attribute.rule, read: KINDS[attribute.kind](attribute) };
  });
}

/** What a record holds of them; a report needs them all. Public data is public: this refusal tells nothing else. */
export function inClear(columns, record) {
  const found = columns.map(({ name, rule, read }) => {
    const isThere = record && typeof record === "object" && Object.hasOwn(record, name);
    need(isThere, `attribute '${name}' is missing from the record; its plan needs it in clear`);
    try {
      return [name, read(record[name])];
    } catch {
      return need(false, `attribute '${name}': ${rule}`); // not a word of the value
    }
  });
  return {
    json: Object.fromEntries(found.map(([name, { json }]) => [name, json])),
    bytes: joined(...found.map(([, { bytes }]) => bytes)),
  };
}
