// Sending, against a real server on this machine.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";

import { Assignment, Plan, Report, send } from "../src/index.js";
import { entryOf } from "./files.js";
import { at, collector } from "./servers.js";

const { sent } = entryOf("olh, assigned").good[0];
const report = new Report(sent);
const TAKEN = [200, { stored: 1, duplicates: 0 }];
const TYPE = "https://sottovoce.dev/problems/x";
const problem = (status, title, detail) => [status, { type: TYPE, title, status, detail }];

test("a report is posted once as JSON when all is well", () =>
  at([TAKEN], async ({ url, asked }) => {
    assert.deepEqual(await send(report, `${url}/`), { stored: 1, duplicates: 0 });
    assert.deepEqual([asked.length, asked[0].path, asked[0].method], [1, "/v1/reports", "POST"]);
    assert.equal(asked[0].headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(asked[0].body), sent);
  }));

test("several reports are one batch", () =>
  at([[200, { stored: 1, duplicates: 1 }]], async ({ url, asked }) => {
    assert.deepEqual(await send([report, report], url), { stored: 1, duplicates: 1 });
    assert.deepEqual(JSON.parse(asked[0].body), { reports: [sent, sent] });
  }));

test("it is sent again with the same id until it is acknowledged", () => {
  const troubles = ["cut", problem(503, "busy"), [502, "<html>"], problem(429, "slow down"), [200, {}]];
  return at([...troubles, TAKEN], async ({ url, asked }) => {
    assert.deepEqual(await send(report, url), { stored: 1, duplicates: 0 });
    assert.equal(asked.length, 6);
    assert.deepEqual([...new Set(asked.map(({ body }) => `${body}`))], [JSON.stringify(report.json)]);
  });
});

test("what is no receipt for all reports is no acknowledgement", async () => {
  const receipts = [{}, [], { stored: 1 }, { stored: 0, duplicates: 0 }, { stored: true, duplicates: 0 }];
  receipts.push({ stored: 0.5, duplicates: 0.5 }, { stored: 2, duplicates: -1 }, { stored: "1", duplicates: 0 });
  for (const body of ["<html>Welcome to our guests</html>", "", "null", "1", ...receipts]) {
    await at([[200, body], TAKEN], async ({ url, asked }) => {
      assert.deepEqual(await send(report, url), { stored: 1, duplicates: 0 });
      assert.equal(asked.length, 2, JSON.stringify(body));
    });
  }
});

test("a page that answers for an assignment is refused", async () => {
  const plan = await Plan.parse(entryOf("olh, assigned").plan);
  for (const body of ["<html>Welcome to our guests</html>", "null", "1", []]) {
    await at([[200, body]], ({ url }) => assert.rejects(Assignment.fetch(url, plan), { name: "InvalidInput" }));
  }
});

test("a refusal ends it at once and says why", () =>
  at([problem(409, "Closed", "the survey takes no more reports")], async ({ url, asked }) => {
    const said = { name: "Refused", status: 409, message: "collector: Closed: the survey takes no more reports" };
    await assert.rejects(send(report, url), { ...said, type: TYPE });
    assert.equal(asked.length, 1);
  }));

test("it gives up in time, and pauses grow to a second at most", () =>
  at([problem(503, "busy")], async ({ url, asked }) => {
    const start = performance.now();
    await assert.rejects(send(report, url, { seconds: 1 }), (wrong) => wrong.name === "Unreachable" && !!wrong.cause);
    assert.ok(performance.now() - start < 1500);
    assert.ok(asked.length >= 3 && asked.length <= 8, `${asked.length} times`); // after 50, 100, 200, 400 ms at most
  }));

test("a collector that says nothing is given up in time", () =>
  at(["silence"], async ({ url, asked }) => {
    await assert.rejects(send(report, url, { seconds: 0.3 }), { name: "Unreachable" });
    assert.equal(asked.length, 1);
  }));

test("nobody there is Unreachable", async () => {
  const { url, close } = await collector(TAKEN);
  await close();
  await assert.rejects(send(report, url, { seconds: 0.2 }), { name: "Unreachable" });
});

test("a plan is fetched by its id, and refused if it hashes to another", async () => {
  const { id, plan } = entryOf("grr");
  await at([[200, plan]], async ({ url, asked }) => {
    assert.equal((await Plan.fetch(url, { id })).id, id);
    assert.equal(asked[0].path, `/v1/plans/${id}`);
    await assert.rejects(Plan.fetch(url, { id: entryOf("hr").id }), { name: "PlanMismatch" });
    await assert.rejects(Plan.fetch(url, { id: "latest" }), { name: "InvalidInput" });
  });
  await at([problem(404, "Unknown plan")], async ({ url }) => {
    await assert.rejects(Plan.fetch(url, { id }), { name: "Refused", message: "collector: Unknown plan" });
  });
});

test("a collector that is not there, that hangs up or breaks off is one clear error", async () => {
  const { id, plan } = entryOf("grr");
  const unreachable = (url) => ({ name: "Unreachable", message: `collector: ${url}/v1/plans/${id} cannot be reached` });
  const gone = await at(["cut"], async ({ url }) => {
    await assert.rejects(Plan.fetch(url, { id }), unreachable(url));
    return url;
  });
  await assert.rejects(Plan.fetch(gone, { id }), (wrong) => {
    assert.equal(wrong.message, unreachable(gone).message);
    assert.equal(wrong.name, "Unreachable");
    assert.ok(wrong.cause);
    return true;
  });
  const short = createServer((_, response) => {
    response.writeHead(200, { "Content-Length": plan.length });
    response.write(plan.slice(0, 10), () => response.destroy());
  });
  await new Promise((resolve) => short.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${short.address().port}`;
  await assert.rejects(Plan.fetch(url, { id }), unreachable(url)).finally(() => short.close());
});

test("an assignment is fetched for its plan", async () => {
  const entry = entryOf("olh, assigned");
  const plan = await Plan.parse(entry.plan);
  await at([[200, entry.good[0].assignment]], async ({ url, asked }) => {
    const { plan: own, id, expires, signature } = await Assignment.fetch(url, plan);
    assert.deepEqual({ plan: own, id, expires, signature }, entry.good[0].assignment);
    assert.equal(asked[0].path, `/v1/plans/${plan.id}/assignment`);
  });
});
