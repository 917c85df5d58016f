// A device: what it keeps, what it refuses, what it tells.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";

import { Assignment, BrowserMemory, Client, newId, PlainMemory, Plan, Report, System, Tape } from "../src/index.js";
import { entryOf } from "./files.js";

const SOURCE = new URL("../src/", import.meta.url);
const FAR = 4_102_444_800;
const planOf = (name) => Plan.parse(entryOf(name).plan, { id: entryOf(name).id });
const given = (plan, expires = FAR) =>
  new Assignment({ plan: plan.id, id: newId(), expires, signature: "5a".repeat(32) });
/** The memory of a device that belongs to a plan's round. */
const inRound = ({ id, series }) => {
  const memory = new PlainMemory();
  memory.set(`sottovoce/round/${series.origin ?? id}`, JSON.stringify({ shares: `${series.shares}`, round: series.round }));
  return memory;
};
const hex = (bytes) => Buffer.from(bytes).toString("hex");

test("shipped files weigh less than 26 kB, and none asks Math for chance", () => {
  const shipped = readdirSync(SOURCE).sort().map((name) => readFileSync(new URL(name, SOURCE)));
  const weight = gzipSync(Buffer.concat(shipped), { level: 9 }).length;
  assert.ok(weight < 26_000, `${weight} bytes`);
  assert.doesNotMatch(Buffer.concat(shipped).toString(), /Math\.random/);
});

test("answering again gives the same report, whatever is answered then", async () => {
  const plan = await planOf("oue");
  const memory = new PlainMemory();
  const first = await new Client(plan, { memory }).report({ x: "a" });
  for (const x of ["b", "c", "nonsense"]) {
    const again = await new Client(plan, { memory }).report({ x });
    assert.deepEqual(again.json, first.json);
    assert.equal(hex(again.bytes), hex(first.bytes));
  }
  assert.deepEqual((await new Client(plan, { memory }).recall()).json, first.json);
  assert.equal(await new Client(plan).recall(), null);
});

test("a report that is recalled has its public values, as they were", async () => {
  const plan = await planOf("two public columns, the last one first");
  const memory = new PlainMemory();
  const first = await new Client(plan, { memory }).report({ owns: "rent", state: "TX", amount: "12.3" });
  assert.deepEqual(first.json.public, { amount: "12.30", state: "TX" });
  const again = await new Client(plan, { memory }).report({ owns: "own", state: "NY", amount: 1 });
  assert.deepEqual(again.json, first.json);
  assert.equal(hex(again.bytes), hex(first.bytes));
  assert.deepEqual(plan.explain().public, ["amount", "state"]);
});

test("a client without a memory keeps its report while it lives", async () => {
  const client = new Client(await planOf("oue"));
  assert.equal((await client.report({ x: "a" })).id, (await client.report({ x: "b" })).id);
});

test("two clients at once draw one report", async () => {
  const plan = await planOf("oue");
  const kept = new Map();
  const slow = {
    get: (key) => new Promise((resolve) => setTimeout(() => resolve(kept.get(key) ?? null), 5)),
    set: (key, value) => new Promise((resolve) => setTimeout(() => resolve(kept.set(key, value)), 5)),
  };
  const reports = await Promise.all(["a", "b", "c"].map((x) => new Client(plan, { memory: slow }).report({ x })));
  assert.equal(new Set(reports.map(({ id }) => id)).size, 1);
});

test("tabs that cannot take turns do not draw, and recall what was drawn", async () => {
  const plan = await planOf("oue");
  const kept = new Map();
  const tabs = [1, 2].map((tab) => import(`../src/client.js?tab=${tab}`)); // each with waiting lines of its own
  const memory = { isShared: true, get: (key) => kept.get(key) ?? null, set: (key, value) => kept.set(key, value) };
  for (const tab of tabs) {
    const { Client: Tab } = await tab;
    await assert.rejects(new Tab(plan, { memory }).report({ x: "a" }), { name: "InvalidInput", message: /^memory.*locks/ });
  }
  assert.equal(kept.size, 0);
  assert.ok(new BrowserMemory().isShared);
  const ends = new Map(); // a browser's locks
  const request = (name, work) => {
    const turn = (ends.get(name) ?? Promise.resolve()).then(work);
    ends.set(name, turn.catch(() => {}));
    return turn;
  };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { locks: { request } } });
  try {
    const clients = (await Promise.all(tabs)).map(({ Client: Tab }) => new Tab(plan, { memory }));
    const [first, second] = await Promise.all(clients.map((client) => client.report({ x: "a" })));
    assert.equal(first.id, second.id);
  } finally {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete globalThis.navigator;
  }
  assert.equal((await new Client(plan, { memory }).report({ x: "b" })).json.plan, plan.id);
});

test("what is kept holds no answer", async () => {
  const plan = await planOf("olh-seeded, open");
  const kept = new Map();
  const memory = { get: (key) => kept.get(key) ?? null, set: (key, value) => kept.set(key, value) };
  const report = await new Client(plan, { memory }).report({ word: "piano" });
  const account = JSON.stringify({ word: { epsilon: 1_500_000_000, delta: 0 } });
  assert.deepEqual([...kept], [["sottovoce/account", account], [`sottovoce/${plan.id}`, JSON.stringify(report.json)]]);
});

test("a report that could not be kept is not given", async () => {
  const full = { get: () => null, set: () => { throw new Error("full"); } };
  await assert.rejects(new Client(await planOf("oue"), { memory: full }).report({ x: "a" }), /full/);
});

test("another plan's memo and a damaged one are refused, not drawn anew", async () => {
  const plan = await planOf("oue");
  const memory = (text) => ({ get: () => text, set: () => assert.fail("drawn anew") });
  const other = await new Client(await planOf("grr")).report({ x: "a" });
  await assert.rejects(new Client(plan, { memory: memory(JSON.stringify(other.json)) }).report({ x: "a" }), /memo/);
  await assert.rejects(new Client(plan, { memory: memory("{") }).report({ x: "a" }), { name: "InvalidInput" });
});

test("text that is not well formed is refused", async () => {
  const client = new Client(await planOf("olh-seeded, open"), { invalid: "raise" });
  await assert.rejects(client.report({ word: "a\ud83c" }), { name: "InvalidInput" });
});

test("integers of 128 bits come as BigInts, text or safe numbers, and no other numbers", async () => {
  const entry = entryOf("codes of 128 bits");
  const plan = await planOf("codes of 128 bits");
  const drawn = (address, row) => {
    const entropy = new Tape(Buffer.from(entry.good[row].entropy, "hex"));
    return new Client(plan, { entropy, invalid: "raise" }).report({ ...entry.good[row].record, address });
  };
  const { address } = entry.good[1].record;
  assert.equal(BigInt(address), 2n ** 128n - 1n);
  assert.equal(hex((await drawn(BigInt(address), 1)).bytes), entry.good[1].report);
  assert.equal(hex((await drawn(0, 0)).bytes), entry.good[0].report);
  assert.equal(hex((await drawn(" +0 ", 0)).bytes), entry.good[0].report);
  for (const wrong of [2n ** 128n, -1n, 2 ** 60, 1e30, 0.5, NaN, [5n], true, "0x10", {}]) {
    await assert.rejects(drawn(wrong, 0), { name: "InvalidInput", message: /'address'.*at most 128 bits$/ });
  }
});

test("a set is any iterable or text, whatever its order", async () => {
  const entry = entryOf("sets");
  const plan = await planOf("sets");
  const row = entry.good.find(({ record }) => record.basket[0] === "eggs");
  const drawn = (basket) => {
    const entropy = new Tape(Buffer.from(row.entropy, "hex"));
    return new Client(plan, { entropy, invalid: "raise" }).report({ ...row.record, basket });
  };
  const items = row.record.basket;
  const same = [[...items].reverse(), new Set(items), [...items, ...items], items.join(" ; "), items.values()];
  for (const basket of same) assert.equal(hex((await drawn(basket)).bytes), row.report);
  for (const wrong of [5n, null, undefined, {}, new Map([["milk", 1]]), [items], ["mf-secret"]]) {
    const message = "attribute 'basket': value must be a set of the schema's 7 values";
    await assert.rejects(drawn(wrong), { name: "InvalidInput", message });
  }
});

test("a refused record leaves nothing behind", async () => {
  const plan = await planOf("oue");
  const memory = new PlainMemory();
  const strict = { memory, invalid: "raise" };
  await assert.rejects(new Client(plan, strict).report({ x: "z" }), { name: "InvalidInput" });
  assert.equal(await new Client(plan, { memory }).recall(), null);
  assert.equal(memory.get("sottovoce/account"), null);
});

test("a device that is asked reports, whatever its person's value is", async () => {
  const plan = await planOf("kinds of attributes");
  const throws = { get word() { throw new Error("secret"); } };
  const records = [{}, { flag: null, word: 5 }, { flag: {}, word: Symbol("x") }, { years: [], mystery: 1 }, throws];
  for (const record of records) assert.equal((await new Client(plan).report(record)).json.plan, plan.id);
  const sets = await planOf("top items");
  for (const basket of [null, 5, ["mf-secret", ["tea"]], {}, "hemlock; tea"]) {
    await new Client(sets, { memory: inRound(sets) }).report({ basket });
  }
  for (const record of [null, undefined, 5, "x"]) {
    await assert.rejects(new Client(plan).report(record), { name: "InvalidInput", message: /^record must be/ });
  }
  assert.throws(() => new Client(plan, { invalid: "ignore" }), /draw or raise/);
});

test("an account keeps what was spent on an attribute, and its cap is not passed", async () => {
  const { plan: text } = entryOf("oue"); // epsilon 1.5
  const memory = new PlainMemory();
  const answer = async (people, options) => {
    const plan = await Plan.parse(text.replace('"people": 1000', `"people": ${people}`));
    return new Client(plan, { memory, ...options }).report({ x: "a" });
  };
  const outcomes = await Promise.allSettled(Array.from({ length: 101 }, (_, place) => answer(1000 + place)));
  const refused = outcomes.filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 101 - 6);
  assert.ok(refused.every(({ reason }) => reason.name === "BudgetExceeded"));
  const message = "attribute 'x': epsilon 9 was spent and 1.5 more would pass the cap of 10";
  assert.equal(refused[0].reason.message, message);
  assert.deepEqual(JSON.parse(memory.get("sottovoce/account")), { x: { epsilon: 9_000_000_000, delta: 0 } });
  const first = outcomes.find(({ status }) => status === "fulfilled").value;
  assert.equal((await answer(1000)).id, first.id); // the memo costs nothing
  await answer(5000, { cap: 10.5 });
  const nothing = new Tape(new Uint8Array(0));
  await assert.rejects(answer(5001, { cap: 10.5, entropy: nothing }), { name: "BudgetExceeded" });
  const yes = await planOf("rr");
  await new Client(yes, { memory }).report({ yes: true }); // of another attribute
  for (const damaged of ['{"x": 5}', '{"x": {"epsilon": -1, "delta": 0}}', '{"x": {"epsilon": 0.5, "delta": 0}}', "{"]) {
    memory.set("sottovoce/account", damaged);
    await assert.rejects(answer(6000), { name: "InvalidInput", message: /^memory/ });
  }
  assert.throws(() => new Client(yes, { cap: -1 }), /at least 0/);
  assert.throws(() => new Client(yes, { cap: NaN }), /at least 0/);
});

test("what a delta adds up to is kept and capped too", async () => {
  const plan = await planOf("two amplified sets");
  assert.deepEqual(plan.cost, { epsilon: 1_200_000_000, delta: 1000 });
  const memory = new PlainMemory();
  await assert.rejects(new Client(plan, { memory, deltaCap: 1e-7 }).report({}), /delta 0 was spent and 0.000001 more/);
  await new Client(plan, { memory, deltaCap: 1e-6 }).report({});
  assert.deepEqual(JSON.parse(memory.get("sottovoce/account")).tags, { epsilon: 1_200_000_000, delta: 1000 });
});

test("escapes and characters that plans may hold are written as in Python", async () => {
  const { id, plan } = entryOf("every character");
  assert.equal((await Plan.parse(plan, { id })).id, id);
});

test("names that differ by what nobody sees are refused", async () => {
  const { plan } = entryOf("grr");
  const [name] = (await Plan.parse(plan)).attributes.map((each) => each.name);
  for (const unseen of ["\u2800", "\ufffc", "\u{13441}", "\u{13442}", "\u{16fe4}", "\u{1d159}", "\u200b", "\ufe0f"]) {
    const renamed = plan.replaceAll(`"${name}"`, `"${name}${unseen}"`);
    await assert.rejects(Plan.parse(renamed), /an attribute's name must be plain text/);
  }
  assert.ok(await Plan.parse(plan.replaceAll(`"${name}"`, `"${name}\u00e9"`)));
});

test("a round is drawn once, and one plan of it is answered", async () => {
  const plan = await planOf("the last of two rounds");
  const first = await planOf("the first of two rounds");
  assert.throws(() => new Client(plan), /memory is required/);
  const silent = { name: "NotInThisRound" };
  for (let trial = 0; trial < 20; trial++) {
    const memory = new PlainMemory();
    const answer = (asked) => new Client(asked, { memory, assignment: given(asked) }).report({ x: "a", yes: true });
    const outcomes = await Promise.allSettled([plan, first, plan, first].map(answer));
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["fulfilled", "fulfilled", "rejected", "rejected"]);
    for (const { reason } of outcomes.filter((each) => each.reason)) assert.equal(reason.name, silent.name);
  }
  const twin = await Plan.parse(entryOf("the last of two rounds").plan.replace('"people": 1000', '"people": 1001'));
  const memory = new PlainMemory();
  const series = entryOf("the last of two rounds").plan.match(/"origin": "(.*)"/)[1];
  memory.set(`sottovoce/round/${series}`, JSON.stringify({ shares: "1,2", round: 1 }));
  await new Client(plan, { memory, assignment: given(plan) }).report({ x: "a", yes: true });
  await assert.rejects(new Client(twin, { memory, assignment: given(twin) }).report({ x: "a", yes: true }), silent);
  memory.set(`sottovoce/round/${series}`, JSON.stringify({ shares: "1,3", round: 1 }));
  await assert.rejects(new Client(twin, { memory, assignment: given(twin) }).report({ x: "a", yes: true }), silent);
});

test("assigned coins are needed, of this plan, in time, and fetched only when a report is drawn", async () => {
  const plan = await planOf("olh, assigned");
  const record = { x: "a" };
  await assert.rejects(new Client(plan).report(record), /assignment is required/);
  assert.throws(() => new Client({ ...plan, coin: "device" }, { assignment: given(plan) }), /only for/);
  const foreign = given(await planOf("hr, assigned"));
  await assert.rejects(new Client(plan, { assignment: foreign }).report(record), { name: "PlanMismatch" });
  await assert.rejects(new Client(plan, { assignment: given(plan, 1_700_000_000) }).report(record), /expired/);
  const rounds = await planOf("the first letter");
  const blank = new PlainMemory();
  const late = { memory: blank, entropy: new Tape(new Uint8Array(0)), assignment: given(rounds, 1_700_000_000) };
  await assert.rejects(new Client(rounds, late).report({}), /expired/); // before any coin
  assert.ok(!blank.get(`sottovoce/round/${rounds.id}`));
  let fetched = 0;
  const memory = new PlainMemory();
  const assignment = async () => (fetched++, given(plan));
  const first = await new Client(plan, { memory, assignment }).report(record);
  const again = await new Client(plan, { memory, assignment }).report(record);
  assert.deepEqual([fetched, again.json], [1, first.json]);
  assert.deepEqual([first.json.expires, first.json.signature], [FAR, "5a".repeat(32)]);
  assert.throws(() => new Assignment({ plan: plan.id, id: "00", expires: 1, signature: "00" }), /hexadecimal/);
});

test("ids tell the minute and no more, and sort by time", () => {
  assert.equal(newId(1_700_000_000_000).slice(0, 12), "018bcfe50000");
  assert.notEqual(newId(5e12), newId(5e12));
  assert.ok(newId(1.7e12) < newId(1.7e12 + 65_536));
});

test("a plan tells what a page needs", async () => {
  const plan = await planOf("kinds of attributes");
  const by = Object.fromEntries(plan.attributes.map((attribute) => [attribute.name, attribute]));
  assert.deepEqual(by.flag.labels, [false, true]);
  assert.deepEqual(by.falling.labels, [10, 7, 4, 1, -2, -5, -8, -11, -14, -17]);
  assert.deepEqual(by.years.labels.slice(0, 2), ["18 to 22", "23 to 27"]);
  assert.deepEqual([by.uneven.labels[0], by.uneven.labels.at(-1)], ["-40 to -28", "38 to 50"]);
  assert.deepEqual([by.years.low, by.years.high, by.years.bins], [18, 97, 16]);
  assert.equal(by.wide.labels, null);
  assert.deepEqual([by.word.labels, by.word.bytes, by.word.size], [null, 40, 1n << 64n]);
  assert.deepEqual([by.basket.asked, by.word.asked, by.basket.labels], [false, true, ["milk", "bread"]]);
  assert.ok(!("read" in by.flag));
  const open = Object.fromEntries((await planOf("windows")).attributes.map((attribute) => [attribute.name, attribute]));
  assert.deepEqual([open.address.bits, open.address.size, open.address.labels], [128, 1n << 128n, null]);
  assert.deepEqual([open.bit.labels, open.address.rule], [[0, 1], "value must be a whole number of at most 128 bits"]);
  const texts = (await planOf("spellings")).attributes.map(({ bits, rule }) => [bits, rule]);
  assert.deepEqual(texts.slice(0, 4), [
    [128, "value must be text of at most 16 bytes of UTF-8"],
    [56, "value must be text"],
    [45, "value must be text"],
    [39, "value must be text of at most 13 bytes of UTF-8 of the schema's alphabet"],
  ]);
});

test("a plan says what it costs", async () => {
  const plan = await planOf("grr");
  assert.equal(plan.epsilon, 1.5);
  assert.ok(Math.abs(plan.bestGuess() - Math.E ** 1.5 / (1 + Math.E ** 1.5)) < 1e-12);
  assert.ok(plan.bestGuess(0.01) < 0.05);
  const told = plan.explain();
  assert.match(told.sentence, /raise a 50% guess about you to at most 81\.8%/);
  assert.deepEqual([told.asked, told.cohorts, told.rounds, told.bytes], [["x"], 1, 1, 1]);
});

test("a plan says when its promise may fail", async () => {
  const plan = await planOf("two amplified sets");
  const told = plan.explain();
  assert.deepEqual([plan.epsilon, plan.delta, told.delta], [1.2, 1e-6, 1e-6]);
  assert.match(told.sentence, /to at most 76\.9%, with the chance of 0\.000001 that it tells more counted in\.$/);
  assert.ok(Math.abs(told.guess - (Math.exp(1.2) + 1e-6) / (Math.exp(1.2) + 1)) < 1e-12);
  const pure = await planOf("amplified sets");
  assert.deepEqual([pure.delta, pure.explain().delta], [0, 0]);
  assert.match(pure.explain().sentence, /to at most 76\.9%\.$/);
});

test("what a plan says is rounded up", async () => {
  const plan = await planOf("grr");
  const said = (epsilon, delta) => Object.assign(Object.create(Plan.prototype), plan, { epsilon, delta }).explain().sentence;
  assert.match(said(0.01, 0), /at most 50\.3%\.$/);
  assert.match(said(0.001, 0), /at most 50\.1%\.$/);
  assert.match(said(1e-20, 0), /at most 50\.1%\.$/);
  assert.match(said(1, 0), /at most 73\.2%\.$/);
  assert.match(said(100, 0), /at most 100%\.$/);
  const told = [0.00012341, 0.00099991, 1.00001e-7, 0.0001, 0.000125].map((delta) => said(1, delta).match(/of (.*) that/)[1]);
  assert.deepEqual(told, ["0.0001235", "0.001", "1.001e-7", "0.0001", "0.000125"]);
});

test("WebCrypto's bytes come in any number, all of them drawn", () => {
  const bytes = new System().bytes(200_000);
  assert.equal(bytes.length, 200_000);
  for (let start = 0; start < bytes.length; start += 20_000) {
    const part = bytes.subarray(start, start + 20_000);
    assert.ok(new Set(part).size > 250, `from ${start} on`);
  }
  assert.throws(() => new Tape(new Uint8Array(3)).bytes(4), /too short/);
});

test("a large report is drawn in good time", async () => {
  const body = JSON.parse(entryOf("ss of 2000").plan);
  const oracle = body.cohorts.cohorts[0].asks[0].oracle;
  body.schema.n.high = 2 ** 20 - 1;
  oracle.size = `${2 ** 20}`;
  oracle.options.chosen = 30_000;
  oracle.thresholds.include = `${30_000n << 44n}`;
  oracle.bits = 2 ** 20;
  const plan = await Plan.parse(`${JSON.stringify(body, null, 1)}\n`);
  const start = performance.now();
  const { json } = await new Client(plan).report({ n: 2 ** 20 - 1 });
  const ones = BigInt(`0x${json.payload}`).toString(2).replaceAll("0", "").length;
  assert.deepEqual([ones, json.payload.length], [30_000, 2 ** 18]);
  assert.ok(performance.now() - start < 10_000);
});

test("bytes of a report are those of its JSON", () => {
  const { report, sent } = entryOf("2^41 tickets").good[0];
  assert.equal(hex(new Report(sent).bytes), report);
  for (const [cohort, digits] of [[127, "7f"], [128, "8001"], [300, "ac02"], [2 ** 32 - 1, "ffffffff0f"]]) {
    assert.equal(hex(new Report({ ...sent, cohort, payload: "" }).bytes).slice(18, -8), digits);
  }
  assert.equal(createHash("sha256").update(entryOf("grr").plan).digest("hex"), entryOf("grr").id);
});
