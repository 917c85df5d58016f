// The form for a new survey: rows of attributes, what epsilon means, and the prediction while one types.

const PAUSE = 350; // milliseconds without a change before the survey is planned
const form = document.getElementById("survey");
const list = document.getElementById("attributes");
const blank = document.getElementById("blank");
const status = document.getElementById("status");
const prediction = document.getElementById("prediction");
const by = (id) => document.getElementById(id);

const percent = (share, digits) => `${(100 * share).toFixed(digits)}%`;
const atMost = (share) => `${Math.min(1000, Math.ceil(1000 * (share + 1e-12))) / 10}%`; // a promise is rounded up
/** Enough digits to see the difference, and no more. */
const points = (share) => (100 * share).toFixed(share < 0.001 ? 3 : share < 0.02 ? 2 : 1);

function showKind(row) {
  const kind = row.querySelector("select").value;
  for (const part of row.querySelectorAll("[data-kind]")) part.hidden = !part.dataset.kind.split(" ").includes(kind);
}

function number() {
  const rows = [...list.children];
  rows.forEach((row, place) => {
    row.querySelector("legend").textContent = `Attribute ${place + 1}`;
    const remove = row.querySelector(".remove");
    remove.hidden = rows.length === 1;
    remove.setAttribute("aria-label", `Remove attribute ${place + 1}`);
  });
}

function add() {
  list.append(blank.content.cloneNode(true));
  number();
  list.lastElementChild.querySelector("input").focus();
}

/** Words for no answer that nobody changed are those of the participants' language. */
function showLanguage() {
  const { options, selectedOptions } = form.elements.language;
  const { noAnswer } = selectedOptions[0].dataset;
  const known = new Set([...options].map((option) => option.dataset.noAnswer));
  const inputs = [...form.querySelectorAll("[name=missing]"), ...blank.content.querySelectorAll("[name=missing]")];
  for (const input of inputs) if (known.has(input.value)) input.value = noAnswer;
}

const SEERS = { local: "Someone who sees a person's report", shuffled: "Whoever sees the mixed reports of all" };

function showTrust() {
  const trust = form.elements.trust.value;
  for (const part of form.querySelectorAll("[data-trust]")) part.hidden = part.dataset.trust !== trust;
  if (trust === "shuffled") form.elements.coin.value = "device"; // an assigned coin names its sender
  by("seer").textContent = SEERS[trust];
}

function showMeaning() {
  showTrust();
  const epsilon = Number(form.elements.epsilon.value);
  by("epsilon-value").value = epsilon.toFixed(1);
  by("guess").textContent = atMost(1 / (1 + Math.exp(-epsilon)));
}

/** The error of shares of one attribute, of cells of pairs, or of larger tables. */
function kindOfError({ what, error, worst, worst_error: largest }) {
  return `${points(error)} points, for ${what}${worst ? ` (worst: ${worst} ${points(largest)})` : ""}`;
}

/** What a plan would learn, in figures and words. */
function show(found) {
  prediction.hidden = false;
  prediction.classList.remove("stale");
  const reach = points(found.reach);
  by("reach").textContent = `± ${reach} points`;
  const [low, high] = [Math.max(0, 0.3 - found.reach), Math.min(1, 0.3 + found.reach)];
  by("example").textContent = `between ${percent(low, 1)} and ${percent(high, 1)}, most times`;
  const whisker = prediction.querySelector(".whisker");
  whisker.style.left = percent(low, 2);
  whisker.style.width = percent(high - low, 2);
  by("method").textContent = found.method;
  const [first] = found.errors;
  const ofTables = found.errors.some((each) => each.kind !== "shares");
  const isByAttribute = found.errors.length > 1 && !ofTables;
  by("reach-of").textContent = first.worst ? `around a share of ${first.worst}, the worst, 95 times of 100` : "around a share, 95 times of 100";
  by("error").textContent = ofTables
    ? found.errors.map(kindOfError).join("; ")
    : `${points(found.error)} points, for ${isByAttribute ? `${first.what}, the worst` : first.what}`;
  by("risen").replaceChildren(
    ...found.promises.map(({ against, guess }) => {
      const item = document.createElement("li");
      item.textContent = found.promises.length > 1 ? `${atMost(guess)} for ${against}` : atMost(guess);
      return item;
    }),
  );
  const others = isByAttribute ? found.errors : found.others;
  by("more").hidden = others.length === 0;
  by("more-title").textContent = isByAttribute ? "Every attribute" : "Other methods, over the cells of whole tables";
  by("others").replaceChildren(
    ...others.map((each) => {
      const item = document.createElement("li");
      item.textContent = `${each.what}: ${points(each.error)} points`;
      return item;
    }),
  );
  by("words").textContent = found.words;
  return `Predicted: ± ${reach} points.`;
}

let timer;
let asking;

async function plan() {
  asking?.abort();
  asking = new AbortController();
  status.textContent = "Planning…";
  status.classList.remove("unseen");
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.preview, { method: "POST", body, signal: asking.signal });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = await answer.json();
    if (found.wrong) {
      prediction.classList.add("stale");
      status.textContent = `Not yet: ${found.wrong}.`;
    } else {
      const shown = show(found);
      status.textContent = found.unheard ? `Not yet: ${found.unheard}.` : shown;
      status.classList.toggle("unseen", !found.unheard); // it says what the figures below show
    }
  } catch (wrong) {
    if (wrong.name !== "AbortError") status.textContent = "The prediction cannot be made just now.";
  }
}

function changed() {
  showMeaning();
  clearTimeout(timer);
  if (![...list.querySelectorAll("[name=name]")].some((input) => input.value.trim())) return;
  timer = setTimeout(plan, PAUSE);
}

by("add").hidden = false;
by("add").addEventListener("click", add);
list.addEventListener("change", (event) => {
  if (event.target.name !== "kind") return;
  showKind(event.target.closest("fieldset"));
  if (event.target.value === "text") form.elements.learn.value = "popular";
});
list.addEventListener("click", (event) => {
  if (!event.target.classList.contains("remove")) return;
  const row = event.target.closest("fieldset");
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  number();
  next.querySelector("input").focus();
  changed();
});
form.elements.up_to.addEventListener("focus", () => {
  form.elements.learn.value = "tables";
});
form.elements.top.addEventListener("focus", () => {
  form.elements.learn.value = "popular";
});
form.elements.language.addEventListener("input", showLanguage); // before the form hears of it
form.addEventListener("input", changed);
number();
[...list.children].forEach(showKind);
changed();
