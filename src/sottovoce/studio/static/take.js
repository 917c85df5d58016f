// Take part: answers are read here and go nowhere; what is drawn from them is kept, sent as it is, and then shown.

import { Assignment, BrowserMemory, canSeal, Client, Plan, Refused, send, Unreachable } from "../client/index.js";
import { askedWords, asksOf, saidWords } from "./words.js";

const { plan: planId, collector, shuffler } = document.getElementById("main").dataset;
const url = new URL(collector || "/", location.href).href.replace(/\/$/, "");
const receiver = shuffler ? "shuffler" : "collector";
const by = (id) => document.getElementById(id);
const memory = new BrowserMemory();
const sentKey = `sottovoce/sent/${planId}`;

const AGAIN = "This is the whisper that this browser drew before. It stays the same for good.";
const CHANGED =
  "Your whisper stays as it is, whatever you answer now. If it were drawn again, the draws together would give your answer away. It may well say something else than you do: that is what protects you.";

const TOO_OLD = "This browser cannot seal your whisper (it has no X25519), so nothing can be sent from here. Try a newer one";

/** The plan as the collector has it, checked against its id, and its JSON. */
async function fetchPlan() {
  const options = { credentials: "omit", referrerPolicy: "no-referrer" };
  const answer = await fetch(`${url}/v1/plans/${planId}`, options).catch(() => null);
  if (!answer?.ok) throw new Error("The survey cannot be reached. Try again later.");
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

function readRecord(plan) {
  const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
  const record = {};
  for (const question of document.querySelectorAll(".question")) {
    const { name } = question.dataset;
    const value = readAnswer(question, attributes.get(name));
    const isRight = value !== undefined && (question.querySelector("input, select").checkValidity?.() ?? true);
    question.classList.toggle("missing", !isRight);
    if (isRight) record[name] = value;
  }
  return record;
}

function complain(text) {
  by("problem").textContent = text;
  by("problem").hidden = !text;
}

/** The parts of what lies inside of a sealed report: all are as long as the plan's longest. */
function sealedParts({ json }, payload, width) {
  const cohort = Uint8Array.from([0, 8, 16, 24], (bits) => json.cohort >>> bits);
  return [
    ["which question", [...cohort]],
    ["the whisper", payload],
    ["filled up", Array(width - payload.length).fill(0)],
  ].filter(([, part]) => part.length);
}

/** The parts of a report's bytes, each with its meaning. */
function partsOf(bytes, payloadLength) {
  const end = bytes.length - 4;
  const start = 10 + bytes.slice(9).findIndex((byte) => byte < 128); // behind the cohort
  const parts = [
    ["version", bytes.slice(0, 1)],
    ["which survey", bytes.slice(1, 9)],
    ["which question", bytes.slice(9, start)],
    ["the whisper", bytes.slice(start, start + payloadLength)],
    ["in clear", bytes.slice(start + payloadLength, end)],
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
    label.textContent = meaning;
    box.append(digits, " ", label);
    if (meaning === "the whisper") box.className = "told";
    return box;
  });
}

function showReport(report, { plan, body }) {
  const attributes = new Map(plan.attributes.map((each) => [each.name, each]));
  const sizes = new Map(plan.attributes.map((each) => [each.name, each.size]));
  const asks = asksOf(body, report.json.cohort, sizes);
  const payload = report.json.payload.match(/../g).map((pair) => parseInt(pair, 16));
  const { cohorts, bytes: width } = plan.explain();
  const group = cohorts > 1 ? ` (by lot: question ${report.json.cohort + 1} of ${cohorts.toLocaleString("en")})` : "";
  by("asked").textContent = `${askedWords(asks, attributes)}${group}`;
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
  const outcome = wasPosted ? "It was sent, but not counted." : "Nothing was sent.";
  if (wrong instanceof Refused && /\/(survey|batch)-closed$/.test(wrong.type)) return `This survey was closed meanwhile. ${outcome}`;
  if (wrong.name === "NotInThisRound") return "This round asks other people; nothing of yours is needed, and nothing was sent. Thank you.";
  if (wrong.name === "BudgetExceeded") return "Your browser has already told as much about this as its limit allows. Nothing was drawn, and nothing was sent.";
  if (wrong instanceof Unreachable && wasPosted) return `The ${receiver} cannot be reached. Your whisper is kept here: send it again later.`;
  if (wrong instanceof Unreachable) return "The collector cannot be reached. Nothing was drawn, and nothing was sent: try again later.";
  return `${wrong.message}.`;
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

function showPromises(plan) {
  const lines = plan.explain().promises.map(({ sentence }) => {
    const line = document.createElement("li");
    line.textContent = sentence;
    return line;
  });
  by("promises").replaceChildren(...lines);
}

async function begin() {
  const survey = await fetchPlan();
  const { plan } = survey;
  if (shuffler) showPromises(plan);
  if (shuffler && !(await canSeal())) throw new Error(TOO_OLD);
  const assignment = plan.coin === "assigned" ? () => Assignment.fetch(url, plan) : undefined;
  const client = new Client(plan, { memory, assignment, invalid: "raise" }); // so that a slip can be mended here
  let drawn = await client.recall();
  if (drawn && isSent(drawn)) {
    showSent(drawn, survey);
    note(AGAIN);
  }
  by("unsent").hidden = !drawn || isSent(drawn);
  by("draw").disabled = false;

  by("answers").addEventListener("submit", async (event) => {
    event.preventDefault(); // nothing is submitted; the answers are read where they are
    const record = readRecord(plan);
    const missing = [...document.querySelectorAll(".question.missing")];
    by("unanswered").hidden = missing.length === 0;
    by("unanswered").textContent = missing.length ? `Please answer: ${missing.map((each) => each.dataset.name).join(", ")}.` : "";
    if (missing.length) {
      missing[0].querySelector("input, select").focus();
      return;
    }
    complain("");
    waitFor(true);
    try {
      const before = drawn;
      drawn = await client.report(record);
      note(before ? CHANGED : "");
      if (isSent(drawn)) by("whisper-title").focus();
      else await sendReport(drawn, survey);
    } catch (wrong) {
      complain(explained(wrong));
    }
    waitFor(false);
  });
  by("answers").addEventListener("input", () => {
    if (drawn) note(CHANGED);
  });
  by("send").addEventListener("click", async () => {
    waitFor(true);
    await sendReport(drawn, survey);
    waitFor(false);
  });
}

begin().catch((wrong) => complain(explained(wrong)));
