export class PlainMemory {
  #kept = new Map();

  get(key) {
    return this.#kept.get(key) ?? null;
  }

  set(key, value) {
    this.#kept.set(key, value);
  }
}

export class BrowserMemory {
  isShared = true;

  get(key) {
    return localStorage.getItem(key);
  }

  set(key, value) {
    localStorage.setItem(key, value);
  }
}
