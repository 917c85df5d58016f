// The site's script: search, light and dark, the menu, buttons that copy. It loads search.js beside it, and nothing else.
"use strict";

const ROOT = document.currentScript.dataset.root;
const MOST_FOUND = 20;
const EXCERPT = 150; // characters

/** The words of a text, as search.py takes it apart. */
function wordsOf(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The index, loaded when somebody first searches. */
let loading = null;
function loadIndex() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${ROOT}search.js`;
    script.onload = () => resolve({ ...window.SEARCH, list: Object.keys(window.SEARCH.words) });
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

/** Weights of the sections that hold a word, or one that begins with it. */
function sectionsOf(index, word) {
  const found = new Map();
  for (const each of index.list) {
    if (!each.startsWith(word)) continue;
    const places = index.words[each];
    const rarity = Math.log(1 + index.sections.length / (places.length / 2));
    const closeness = each === word ? 1 : 0.4 * (word.length / each.length);
    for (let place = 0; place < places.length; place += 2) {
      const weight = places[place + 1] * rarity * closeness;
      found.set(places[place], Math.max(found.get(places[place]) ?? 0, weight));
    }
  }
  return found;
}

/** The best sections that hold all words of a query. */
function search(index, query) {
  const parts = [...new Set(wordsOf(query))].map((word) => sectionsOf(index, word));
  if (!parts.length) return [];
  const scores = [];
  for (const section of parts[0].keys()) {
    if (!parts.every((part) => part.has(section))) continue;
    scores.push([section, parts.reduce((sum, part) => sum + part.get(section), 0)]);
  }
  scores.sort((one, other) => other[1] - one[1] || one[0] - other[0]);
  return scores.slice(0, MOST_FOUND).map(([section]) => section);
}

/** A piece of a section around the first word of the query, with the words marked. */
function excerpt(text, query) {
  const words = wordsOf(query);
  const low = text.toLowerCase();
  const first = Math.min(...words.map((word) => low.indexOf(word)).filter((place) => place >= 0));
  const start = Number.isFinite(first) ? Math.max(0, text.lastIndexOf(" ", first - 40) + 1) : 0;
  const end = text.indexOf(" ", start + EXCERPT);
  const piece = (start ? "… " : "") + text.slice(start, end < 0 ? undefined : end);
  const span = document.createElement("span");
  span.className = "excerpt";
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(${words.join("|")})`, "giu");
  for (const [place, part] of piece.split(pattern).entries()) {
    if (place % 2) {
      const mark = document.createElement("mark");
      mark.textContent = part;
      span.append(mark);
    } else span.append(part);
  }
  return span;
}

const input = document.getElementById("site-query");
const list = document.getElementById("site-found");
const count = document.getElementById("site-count");
let chosen = -1;

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
  chosen = -1;
}

function choose(place) {
  const links = [...list.querySelectorAll("a")];
  if (!links.length) return;
  chosen = (place + links.length) % links.length;
  for (const [each, link] of links.entries()) link.setAttribute("aria-selected", String(each === chosen));
  links[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", links[chosen].id);
}

function show(index, query) {
  const found = search(index, query);
  list.replaceChildren();
  for (const [place, section] of found.entries()) {
    const [page, anchor, heading, text] = index.sections[section];
    const [address, title] = index.pages[page];
    const link = document.createElement("a");
    link.href = `${ROOT}${address}${heading === title ? "" : `#${anchor}`}`;
    link.id = `found-${place}`;
    link.tabIndex = -1;
    link.setAttribute("role", "option");
    const name = document.createElement("b");
    name.textContent = heading;
    const where = document.createElement("span");
    where.className = "where";
    where.textContent = heading === title ? "" : title;
    link.append(name, where, excerpt(text, query));
    list.append(link);
  }
  if (!found.length) {
    const nothing = document.createElement("p");
    nothing.textContent = "Nothing was found.";
    list.append(nothing);
  }
  count.textContent = `${found.length} found`;
  list.dataset.query = query;
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  choose(0);
}

input.addEventListener("focus", () => void loadIndex());
input.addEventListener("input", async () => {
  if (!wordsOf(input.value).length) return close();
  const query = input.value;
  const index = await loadIndex();
  if (query === input.value) show(index, query);
});
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    event.preventDefault();
  } else if (event.key === "Enter") list.querySelectorAll("a")[chosen]?.click();
  else if (event.key === "Escape") close();
});
list.addEventListener("click", (event) => event.target.closest("a") && close());
document.addEventListener("click", (event) => event.target.closest(".search") || close());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea")) {
    input.focus();
    event.preventDefault();
  }
});

// light and dark
document.querySelector(".theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // the choice holds for this page alone
  }
});

// the menu of a narrow screen
const parts = document.getElementById("site-parts");
const menu = document.querySelector(".menu");
menu.addEventListener("click", () => {
  const isOpen = parts.classList.toggle("open");
  menu.setAttribute("aria-expanded", String(isOpen));
});
parts.scrollTop = parts.querySelector("[aria-current]").offsetTop - parts.clientHeight / 2;

// what can be copied, and linked to
for (const block of navigator.clipboard ? document.querySelectorAll("pre") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = block.querySelector("code").cloneNode(true);
    for (const part of code.querySelectorAll(".gp, .go")) part.remove(); // prompts, and what was printed
    await navigator.clipboard.writeText(code.textContent.trim());
    button.textContent = "Copied";
  });
  block.append(button);
}
for (const heading of document.querySelectorAll("main :is(h2, h3, h4)[id]")) {
  const link = document.createElement("a");
  link.className = "anchor";
  link.href = `#${heading.id}`;
  link.textContent = "#";
  link.setAttribute("aria-label", `Link to: ${heading.textContent}`);
  heading.append(link);
}
