import { crc32, fromHex, joined, leb128, toBytes, toHex } from "./bytes.js";

/** The minute, so that ids sort by time, then chance. */
export function newId(now = Date.now()) {
  const time = toBytes((BigInt(now) >> 16n) << 16n, 6).reverse();
  return toHex(joined(time, globalThis.crypto.getRandomValues(new Uint8Array(10))));
}

export class Report {
  constructor(json) {
    this.json = Object.freeze(json);
    this.id = json.id;
    Object.freeze(this);
  }

  get bytes() {
    const { sottovoce, plan, cohort, payload } = this.json;
    const body = joined([sottovoce], fromHex("plan", plan).slice(0, 8), leb128(cohort), fromHex("payload", payload));
    return joined(body, toBytes(crc32(body), 4));
  }
}
