// Where a device keeps its memos: strings by key. Never an answer, only what was or may be sent.

/** As long as the page or process lives. */
export class PlainMemory {
  #kept = new Map();

  get(key) {
    return this.#kept.get(key) ?? null;
  }

  set(key, value) {
    this.#kept.set(key, value);
  }
}

/** In the browser, for this site. */
export class BrowserMemory {
  get(key) {
    return localStorage.getItem(key);
  }

  set(key, value) {
    localStorage.setItem(key, value);
  }
}
