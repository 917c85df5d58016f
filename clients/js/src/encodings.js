// Encodings: how a record's codes become one value of a finite domain.

import { bitLength, parity, whole } from "./bytes.js";
import { need } from "./errors.js";

function sizeOf(schema, name) {
  need(schema.has(name), `plan: attribute '${name}' is not in its schema`);
  return schema.get(name).size;
}

/** The largest mask on an attribute's code. */
export const fullMask = (schema, name) => (1n << BigInt(bitLength(sizeOf(schema, name) - 1n))) - 1n;

/** The cell of a table, the last attribute varying fastest. */
export function cells(schema, attributes) {
  const sizes = attributes.map((name) => sizeOf(schema, name));
  return {
    attributes,
    size: sizes.reduce((total, size) => total * size),
    encode: (codes) => attributes.reduce((cell, name, place) => cell * sizes[place] + codes.get(name), 0n),
  };
}

/** One bit per product, the first one highest: the parity of all bits that its masks select. */
export function parities(schema, attributes, products) {
  const masks = products.map((row) =>
    attributes.map((name, place) => whole("plan: mask", row[place], 0n, fullMask(schema, name))),
  );
  const sign = (row, codes) => row.reduce((odd, mask, place) => odd ^ parity(mask & codes.get(attributes[place])), 0n);
  return {
    attributes,
    size: 1n << BigInt(masks.length),
    encode: (codes) => masks.reduce((value, row) => (value << 1n) | sign(row, codes), 0n),
  };
}

export function readEncoding({ kind, attributes, products }, schema) {
  need(kind === "cells" || kind === "parities", "plan: encoding must be cells or parities");
  return kind === "cells" ? cells(schema, attributes) : parities(schema, attributes, products);
}
