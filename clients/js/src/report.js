import { crc32, fromHex, joined, leb128, toBytes, toHex } from "./bytes.js";
import { need } from "./errors.js";

/** The minute, so that ids sort by time, then chance. */
export function newId(now = Date.now()) {
  const time = toBytes((BigInt(now) >> 16n) << 16n, 6).reverse();
  return toHex(joined(time, globalThis.crypto.getRandomValues(new Uint8Array(10))));
}

export class Report {
  #public;

  /** `inClear`: the bytes of its public values, which its plan knows; `onion`: the report as it leaves, if sealed. */
  constructor(json, inClear = [], onion = null) {
    this.json = Object.freeze(json);
    this.id = json.id;
    this.onion = onion;
    this.#public = inClear;
    Object.freeze(this);
  }

  get bytes() {
    const { sottovoce, plan, cohort, payload, public: inClear } = this.json;
    need(!inClear || this.#public.length, "report: only its client knows the bytes of its public values");
    const head = joined([sottovoce], fromHex("plan", plan).slice(0, 8), leb128(cohort));
    const body = joined(head, fromHex("payload", payload), this.#public);
    return joined(body, toBytes(crc32(body), 4));
  }
}
