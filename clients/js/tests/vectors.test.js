// The wire's vectors in Node; and that they can fail.

import assert from "node:assert/strict";
import test from "node:test";

import * as attributes from "../src/attributes.js";
import * as hashes from "../src/hashes.js";
import * as sottovoce from "../src/index.js";
import { hashMismatches, mismatches, spellingMismatches } from "./check.js";
import { entryOf, ONIONS, VECTORS } from "./files.js";

test("every vector gives the same bytes, and what must be refused is", async () => {
  assert.deepEqual(await mismatches(sottovoce, VECTORS), []);
  assert.deepEqual(hashMismatches(hashes, VECTORS), []);
  assert.deepEqual(spellingMismatches(attributes, VECTORS), []);
});

test("every onion has the same bytes, and plans that shuffling cannot keep are refused", async () => {
  assert.deepEqual(await mismatches(sottovoce, ONIONS), []);
});

test("an onion for another key or of another nonce is a mismatch", async () => {
  const [entry] = structuredClone(ONIONS.plans);
  const { onion, entropy } = entry.good[0];
  entry.good[0].onion = onion.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  entry.good[1].entropy = entry.good[1].entropy.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
  const wrong = await mismatches(sottovoce, { plans: [entry], bad_plans: [] });
  assert.ok(entropy.length > 64);
  assert.deepEqual(wrong.map((line) => line.slice(0, 19)), ["one shuffler: onion", "one shuffler: onion"]);
});

test("a vector of other coins, or with more of them, is a mismatch", async () => {
  const entry = structuredClone(entryOf("oue"));
  entry.good[0].entropy = entry.good[0].entropy.replace(/./g, "0");
  entry.good[1].entropy += "00";
  const [first, ...others] = await mismatches(sottovoce, { plans: [entry], bad_plans: [] });
  assert.match(first, /^oue: bytes/);
  assert.match(others.at(-1), /bytes of entropy used/);
});

test("another permutation, tag or spelling is a mismatch", () => {
  const broken = { ...hashes, permuted: (number) => number, tagOf: () => 0n };
  assert.ok(hashMismatches(broken, VECTORS).length > 40);
  const longer = ({ x }) => attributes.readSchema({ x: { ...x, bytes: x.bytes + 8 } });
  assert.ok(spellingMismatches({ readSchema: longer }, VECTORS).length > 15);
});

test("a good plan among the bad ones is a mismatch", async () => {
  const { plan, id } = entryOf("grr");
  const row = { why: "nothing wrong", plan, id, error: "InvalidInput" };
  assert.deepEqual(await mismatches(sottovoce, { plans: [], bad_plans: [row] }), ["plan with nothing wrong: null"]);
});
