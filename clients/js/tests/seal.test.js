// Sealed reports: RFC 9180's own numbers, what is kept, what is sent, what a person is told.

import assert from "node:assert/strict";
import test from "node:test";

import { canSeal, Client, PlainMemory, Plan, Report, send, Tape } from "../src/index.js";
import { hpkeSeal } from "../src/seal.js";
import { ONIONS } from "./files.js";
import { at } from "./servers.js";

const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");
const [ONE, THREE, FAKES, NO_KEYS] = ONIONS.plans;
const TAKEN = [200, { taken: 1 }];
const BUSY = [503, { title: "Busy", status: 503 }];
const planOf = ({ plan, id }) => Plan.parse(plan, { id });
const reportOf = async (entry, options) => new Client(await planOf(entry), options).report(entry.good[0].record);

// RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, base mode
const INFO = bytes("4f6465206f6e2061204772656369616e2055726e");
const EPHEMERAL = bytes("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736");
const ENCAPSULATED = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431";
const RECIPIENT = bytes("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
const PLAIN = new TextEncoder().encode("Beauty is truth, truth beauty");
const AAD = new TextEncoder().encode("Count-0");
const CIPHERTEXT = "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a";

test("the published vector of HPKE", async () => {
  assert.equal(hex(await hpkeSeal(PLAIN, RECIPIENT, INFO, EPHEMERAL, AAD)), ENCAPSULATED + CIPHERTEXT);
});

test("a sealed report is drawn and sealed once, and kept with its onion", async () => {
  const memory = new PlainMemory();
  const plan = await planOf(THREE);
  const [first, other] = [await reportOf(THREE, { memory }), await reportOf(THREE)];
  assert.notEqual(hex(first.onion), hex(other.onion)); // of other coins
  for (const drinks of ["never", "daily"]) {
    const again = await new Client(plan, { memory }).report({ drinks });
    assert.deepEqual([again.json, hex(again.onion)], [first.json, hex(first.onion)]);
  }
  assert.equal(hex((await new Client(plan, { memory }).recall()).onion), hex(first.onion));
  assert.ok(!("onion" in first.json));
  const kept = JSON.parse(memory.get(`sottovoce/${plan.id}`));
  assert.deepEqual(kept, { ...first.json, onion: hex(first.onion) });
  memory.set(`sottovoce/${plan.id}`, JSON.stringify(first.json));
  await assert.rejects(new Client(plan, { memory }).recall(), /memo does not fit/);
});

test("all onions of a plan have one size, whatever was answered and asked", async () => {
  const sizes = new Set();
  for (let person = 0; person < 20; person++) sizes.add((await reportOf(THREE)).onion.length);
  assert.deepEqual([...sizes], [16 + 4 + (await planOf(THREE)).explain().bytes + 4 * 48]);
});

test("an onion is posted to the first hop, and the same one until it is acknowledged", () =>
  at(["cut", BUSY, [200, "<html>"], TAKEN], async ({ url, asked }) => {
    const report = await reportOf(ONE);
    assert.deepEqual(await send(report, url), { stored: 1, duplicates: 0 });
    assert.deepEqual(asked.map(({ path }) => path), Array(4).fill(`/v1/onions/${ONE.id}`));
    assert.deepEqual([...new Set(asked.map(({ body }) => hex(body)))], [hex(report.onion)]);
    assert.equal(asked[0].headers["content-type"], "application/vnd.sottovoce.onions");
  }));

test("several onions go one by one, and each receipt is added", () =>
  at([TAKEN, BUSY, [200, { taken: 2 }], TAKEN], async ({ url, asked }) => {
    const reports = [await reportOf(ONE), await reportOf(THREE)];
    assert.deepEqual(await send(reports, url), { stored: 2, duplicates: 0 });
    assert.deepEqual(asked.map(({ path }) => path.slice(11)), [ONE.id, THREE.id, THREE.id, THREE.id]);
  }));

test("a report that is not sealed is not sent if its plan has hops", () =>
  at([[200, { stored: 1, duplicates: 0 }]], async ({ url, asked }) => {
    const report = await reportOf(ONE);
    for (const list of [new Report(report.json), [report, new Report(report.json)]]) {
      await assert.rejects(send(list, url), { name: "InvalidInput", message: /not sealed/ });
    }
    assert.equal(asked.length, 0);
    const open = await reportOf(NO_KEYS);
    assert.equal(open.onion, null);
    await send(open, url);
    assert.equal(asked[0].path, "/v1/reports");
  }));

test("a shuffler that refuses, or is not there, is named", async () => {
  const report = await reportOf(ONE);
  const gone = await at([[409, { title: "Closed", status: 409 }]], async ({ url }) => {
    await assert.rejects(send(report, url), { name: "Refused", message: "shuffler: Closed" });
    return url;
  });
  await assert.rejects(send(report, gone, { seconds: 0.1 }), { name: "Unreachable", message: /^shuffler: no ack/ });
});

test("a browser without X25519 is told so before anything is drawn", async () => {
  const plan = await planOf(ONE);
  const { subtle } = globalThis.crypto;
  const memory = new PlainMemory();
  const refuse = () => Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError"));
  assert.ok(await canSeal());
  Object.defineProperty(subtle, "importKey", { configurable: true, value: refuse });
  try {
    assert.equal(await canSeal(), false);
    const client = new Client(plan, { memory, entropy: new Tape(new Uint8Array(0)) });
    const message = "this browser cannot seal reports: its WebCrypto has no X25519";
    await assert.rejects(client.report(ONE.good[0].record), { name: "SottovoceError", message });
    assert.equal(memory.get("sottovoce/account"), null);
  } finally {
    delete subtle.importKey;
  }
  assert.ok(await canSeal());
});

test("a key of low order is refused, before anything is spent", async () => {
  const body = JSON.parse(ONE.plan);
  body.shuffle.hops[0] = "00".repeat(32);
  const read = Plan.parse(`${JSON.stringify(body, null, 1)}\n`);
  await assert.rejects(read, { name: "InvalidInput", message: /public keys of X25519/ });
  const sealed = hpkeSeal(new Uint8Array(1), new Uint8Array(32), new Uint8Array(0), new Uint8Array(32));
  await assert.rejects(sealed, { name: "InvalidInput", message: /no public key of X25519/ });
});

test("a shuffled plan makes three promises, the worst one last", async () => {
  const plan = await planOf(FAKES);
  assert.deepEqual({ ...plan.shuffling, hops: plan.shuffling.hops.length }, {
    epsilon: 0.5, delta: 1e-9, least: 100, fakes: 500, colluding: 1.5, hops: 3,
  });
  const { promises, sentence, epsilon } = plan.explain();
  assert.deepEqual(promises.map((each) => [each.epsilon, each.delta]), [[0.5, 1e-9], [1.5, 1e-9], [2, 0]]);
  assert.match(promises[0].sentence, /^The analyst, .* at least 100 people, .* at most 62\.3%, with the chance of 1e-9 /);
  assert.match(promises[1].sentence, /if everybody else tells .* at most 81\.8%, with the chance of 1e-9 /);
  assert.match(promises[2].sentence, /together with all shufflers, .* at most 88\.1%\.$/);
  assert.deepEqual([sentence, epsilon], [promises[2].sentence, 2]);
  const [, second] = (await planOf(ONE)).explain().promises; // without fakes: no more than the report by itself
  assert.deepEqual([second.epsilon, second.delta], [2, 0]);
});

test("a plan that names no keys promises what its report does by itself", async () => {
  const plan = await planOf(NO_KEYS);
  const { promises, sentence } = plan.explain();
  assert.deepEqual(promises.map((each) => each.sentence), [sentence]);
  assert.match(sentence, /^Someone who sees your report can raise a 50% guess about you to at most 88\.1%\.$/);
});
