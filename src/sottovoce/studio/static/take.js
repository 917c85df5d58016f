// Take part: answers are read here and go nowhere; what is drawn from them is kept, sent as it is, and then shown.

import { Assignment, BrowserMemory, canSeal, Client, Plan, Refused, send, Unreachable } from "../client/index.js";
import { say, useSentences } from "./language.js";
import { askedWords, asksOf, saidWords } from "./words.js";

const { plan: planId, collector, shuffler, sentences } = document.getElementById("main").dataset;
const url = new URL(collector || "/", location.href).href.replace(/\/$/, "");
const by = (id) => document.getElementById(id);
const memory = new BrowserMemory();
const sentKey = `sottovoce/sent/${planId}`;

useSentences(JSON.parse(sentences));

/** A problem in the words of the page. */
class Told extends Error {}

/** The plan as the collector has it, checked against its id, and its JSON. */
async function fetchPlan() {
  const options = { credentials: "omit", referrerPolicy: "no-referrer" };
  const answer = await fetch(`${url}/v1/plans/${planId}`, options).catch(() => null);
  if (!answer?.ok) throw new Told(say("no_survey"));
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const plan = await Plan.parse(bytes, { id: planId });
  return { plan, body: JSON.parse(new TextDecoder().decode(bytes)) };
}

/** What is answered now, by attribute; undefined where nothing is. */
function readAnswer(question, attribute) {
  if ("set" in question.dataset) return [...question.querySelectorAll("input:checked")].map((each) => attribute.labels[Number(each.value)]);
  const input = question.querySelector("input:checked, select, input:not([type=radio])");
  if (!input || input.value.trim() === "") return undefined;
  return "listed" in input.dataset ? attribute.labels[Number(input.value)] : input.value;
}

/** What is reported for a question that is left out, if it may be. */
function readMissing(question, attribute) {
  const { missing } = question.dataset;
  if (missing === undefined) return undefined;
  return question.querySelector("[type=number]") ? missing : attribute.labels[Number(missing)];
}

function readRecord(plan) {
  const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
  const record = {};
  const left = []; // questions that are left out, and may be
  for (const question of document.querySelectorAll(".question")) {
    const { name } = question.dataset;
    const attribute = attributes.get(name);
    const answer = readAnswer(question, attribute);
    const value = answer ?? readMissing(question, attribute);
    const isRight = value !== undefined && (question.querySelector("input, select").checkValidity?.() ?? true);
    if (isRight && answer === undefined) left.push(question.dataset.asked);
    question.classList.toggle("missing", !isRight);
    if (isRight) record[name] = value;
  }
  return { record, left: left.join(", ") };
}

function complain(text) {
  by("problem").textContent = text;
  by("problem").hidden = !text;
}

/** The parts of what lies inside of a sealed report: all are as long as the plan's longest. */
function sealedParts({ json }, payload, width) {
  const cohort = Uint8Array.from([0, 8, 16, 24], (bits) => json.cohort >>> bits);
  return [
    ["question", [...cohort]],
    ["answer", payload],
    ["filled", Array(width - payload.length).fill(0)],
  ].filter(([, part]) => part.length);
}

/** The parts of a report's bytes, each with its meaning. */
function partsOf(bytes, payloadLength) {
  const end = bytes.length - 4;
  const start = 10 + bytes.slice(9).findIndex((byte) => byte < 128); // behind the cohort
  const parts = [
    ["version", bytes.slice(0, 1)],
    ["survey", bytes.slice(1, 9)],
    ["question", bytes.slice(9, start)],
    ["answer", bytes.slice(start, start + payloadLength)],
    ["clear", bytes.slice(start + payloadLength, end)],
    ["checksum", bytes.slice(end)],
  ];
  return parts.filter(([, part]) => part.length);
}

const hex = (bytes, between = "") => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(between);

function byteList(report, payload, width) {
  const parts = report.onion ? sealedParts(report, payload, width) : partsOf([...report.bytes], payload.length);
  return parts.map(([meaning, part]) => {
    const box = document.createElement("span");
    const digits = document.createElement("code");
    const label = document.createElement("small");
    digits.textContent = hex(part, " ");
    label.textContent = say(`part_${meaning}`);
    box.append(digits, " ", label);
    if (meaning === "answer") box.className = "told";
    return box;
  });
}

/** How this page asked for the attributes that were drawn, where it did so in other words than their names. */
function questionLines(asks) {
  const names = new Set(asks.flatMap((ask) => ask.names));
  const others = [...document.querySelectorAll(".question")].filter(({ dataset }) => names.has(dataset.name) && dataset.asked !== dataset.name);
  return others.map(({ dataset }) => {
    const line = document.createElement("li");
    line.textContent = `${dataset.name}: ${dataset.asked}`;
    return line;
  });
}

function showReport(report, { plan, body }) {
  const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
  const sizes = new Map(plan.attributes.map((each) => [each.name, each.size]));
  const asks = asksOf(body, report.json.cohort, sizes);
  const payload = report.json.payload.match(/../g).map((pair) => parseInt(pair, 16));
  const { cohorts, bytes: width } = plan.explain();
  const group = cohorts > 1 ? ` (${say("by_lot", { number: report.json.cohort + 1, count: cohorts.toLocaleString(document.documentElement.lang) })})` : "";
  by("asked").textContent = `${askedWords(asks, attributes)}${group}`;
  by("questions").replaceChildren(...questionLines(asks));
  by("says").textContent = saidWords(asks, payload, attributes).join(" ");
  const inClear = Object.entries(report.json.public ?? {}).map(([name, value]) => `${name}: ${value}`);
  by("clear").textContent = inClear.join(", ");
  by("clear").parentElement.hidden = !inClear.length;
  by("bytes").replaceChildren(...byteList(report, payload, width));
  by("body").textContent = report.onion ? hex(report.onion) : JSON.stringify(report.json);
  by("whisper").hidden = false;
}

function note(text) {
  by("kept").textContent = text;
  by("kept").hidden = !text;
}

function showSent(report, survey) {
  if (!report.onion) by("sent-id").textContent = report.id;
  by("thanks").hidden = false;
  by("unsent").hidden = true;
  showReport(report, survey);
}

const isSent = (report) => memory.get(sentKey) === report.id;

function explained(wrong, wasPosted = false) {
  if (wrong instanceof Refused && /\/(survey|batch)-closed$/.test(wrong.type)) return say(wasPosted ? "closed_sent" : "closed_unsent");
  if (wrong.name === "NotInThisRound") return say("other_round");
  if (wrong.name === "BudgetExceeded") return say("budget");
  if (wrong instanceof Unreachable) return say(wasPosted ? "kept" : "unreachable");
  return wrong instanceof Told ? wrong.message : `${wrong.message}.`;
}

function waitFor(isWaiting) {
  by("draw").disabled = isWaiting;
  by("send").disabled = isWaiting;
}

/** Seen before it is sent, a whisper could be kept back: such silence would tell. */
async function sendReport(report, survey) {
  complain("");
  try {
    await send(report, shuffler ?? url, { seconds: 20 });
    memory.set(sentKey, report.id);
    showSent(report, survey);
    by("thanks-title").focus();
  } catch (wrong) {
    complain(explained(wrong, true));
    by("unsent").hidden = wrong instanceof Refused; // for good
  }
}

const PROMISES = ["who_analyst", "who_others", "who_shufflers"]; // in the order of the plan's
const percent = (share) => `${Math.min(1000, Math.ceil(1000 * (share + 1e-12))) / 10}%`; // rounded up, as a promise is

function showPromises(plan) {
  const lines = plan.explain().promises.map(({ guess, delta }, place) => {
    const line = document.createElement("li");
    line.textContent = say(delta ? "promise_delta" : "promise", { who: say(PROMISES[place]), guess: percent(guess), delta });
    return line;
  });
  by("promises").replaceChildren(...lines);
}

/** The questions follow when somebody agrees; who has answered before did so. */
function askConsent(isGiven) {
  const section = by("consent");
  if (!section) return;
  const go = () => {
    section.hidden = true;
    by("answers").hidden = false;
  };
  if (isGiven) go();
  by("agree").disabled = false;
  by("agree").addEventListener("click", () => {
    go();
    by("answers-title").focus();
  });
}

async function begin() {
  const survey = await fetchPlan();
  const { plan } = survey;
  if (shuffler) showPromises(plan);
  if (shuffler && !(await canSeal())) throw new Told(say("too_old"));
  const assignment = plan.coin === "assigned" ? () => Assignment.fetch(url, plan) : undefined;
  const client = new Client(plan, { memory, assignment, invalid: "raise" }); // so that a slip can be mended here
  let drawn = await client.recall();
  let confirmed = ""; // what was left out when the button was pressed before
  if (drawn && isSent(drawn)) {
    showSent(drawn, survey);
    note(say("again"));
  }
  by("unsent").hidden = !drawn || isSent(drawn);
  by("draw").disabled = false;
  askConsent(Boolean(drawn));

  by("answers").addEventListener("submit", async (event) => {
    event.preventDefault(); // nothing is submitted; the answers are read where they are
    const { record, left } = readRecord(plan);
    const missing = [...document.querySelectorAll(".question.missing")];
    by("unanswered").hidden = missing.length === 0;
    by("unanswered").textContent = missing.length ? say("please_answer", { names: missing.map((each) => each.dataset.asked).join(", ") }) : "";
    if (missing.length) {
      missing[0].querySelector("input, select").focus();
      return;
    }
    if (left && left !== confirmed && !drawn) {
      confirmed = left; // once more, in case it was an oversight
      by("unanswered").hidden = false;
      by("unanswered").textContent = say("left_out", { names: left });
      return;
    }
    complain("");
    waitFor(true);
    try {
      const before = drawn;
      drawn = await client.report(record);
      note(before ? say("changed") : "");
      if (isSent(drawn)) by("whisper-title").focus();
      else await sendReport(drawn, survey);
    } catch (wrong) {
      complain(explained(wrong));
    }
    waitFor(false);
  });
  by("answers").addEventListener("input", () => {
    if (drawn) note(say("changed"));
  });
  by("send").addEventListener("click", async () => {
    waitFor(true);
    await sendReport(drawn, survey);
    waitFor(false);
  });
}

begin().catch((wrong) => complain(explained(wrong)));
