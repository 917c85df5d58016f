// Keeps the page of a survey fresh: every few seconds the parts that changed are fetched; none while nobody looks.

const EVERY = 3000; // milliseconds
const QUIET = 20_000; // between two announcements to whoever listens
const { live } = document.getElementById("main").dataset;
const news = document.getElementById("news");
let said = performance.now();
let failures = 0;
let timer;

/** Put a new part in place of the old one; what was open stays open, and the focus stays where it was. */
function replace(part) {
  const old = document.querySelector(`[data-part="${part.dataset.part}"]`);
  const open = [...old.querySelectorAll("details[open][id]")].map((each) => each.id);
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(part);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (part.dataset.news && performance.now() - said > QUIET) {
    news.textContent = part.dataset.news;
    said = performance.now();
  }
}

async function refresh() {
  const have = [...document.querySelectorAll("[data-version]")].map((part) => ["have", part.dataset.version]);
  try {
    const answer = await fetch(`${live}?${new URLSearchParams(have)}`);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    fresh.querySelectorAll("[data-part]").forEach((part) => replace(document.adoptNode(part)));
    failures = 0;
  } catch {
    failures = Math.min(failures + 1, 5); // the server is away: ask less often
  }
  again();
}

function again() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, EVERY * 2 ** failures);
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
again();
