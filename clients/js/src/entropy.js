// Where coins come from, and exact draws. No float takes part.

import { bitLength, joined, sha256, toBytes, toInteger } from "./bytes.js";
import { need } from "./errors.js";

export const WHOLE = 1n << 64n; // the threshold of a coin that always lands heads
const MOST_AT_ONCE = 65536; // that getRandomValues gives

export class Entropy {
  public = this; // draws that tell nothing of a value, which others may assign

  bits(count) {
    return BigInt.asUintN(count, toInteger(this.bytes(Math.ceil(count / 8))));
  }

  coin(threshold) {
    return this.bits(64) < threshold;
  }

  below(limit) {
    for (;;) {
      const value = this.bits(bitLength(limit - 1n));
      if (value < limit) return value;
    }
  }

  /** Coins, all compared with the threshold at once, highest bit first. */
  coins(threshold, count) {
    let open = (1n << BigInt(count)) - 1n;
    if (threshold >= WHOLE) return open;
    let heads = 0n;
    for (let place = 63n; place >= 0n && open; place--) {
      const drawn = this.bits(count);
      if ((threshold >> place) & 1n) {
        heads |= open & ~drawn;
        open &= drawn;
      } else {
        open &= ~drawn;
      }
    }
    return heads;
  }

  /** A uniform subset (Floyd). */
  subset(total, chosen) {
    const picked = new Uint8Array(total);
    for (let last = total - chosen; last < total; last++) {
      const candidate = this.below(BigInt(last + 1));
      picked[picked[candidate] ? last : candidate] = 1;
    }
    return BigInt(`0b0${picked.reverse().join("")}`);
  }
}

export class System extends Entropy {
  bytes(count) {
    const out = new Uint8Array(count);
    for (let start = 0; start < count; start += MOST_AT_ONCE) {
      globalThis.crypto.getRandomValues(out.subarray(start, start + MOST_AT_ONCE));
    }
    return out;
  }
}

export class Tape extends Entropy {
  position = 0;

  constructor(data) {
    super();
    this.data = data;
  }

  bytes(count) {
    this.position += count;
    need(this.position <= this.data.length, "tape: it is too short for the draws asked of it");
    return this.data.subarray(this.position - count, this.position);
  }
}

export class Assigned extends Entropy {
  constructor(open, own) {
    super();
    this.public = open;
    this.bytes = (count) => own.bytes(count);
  }
}

export async function stream(seed, blocks) {
  const counted = Array.from({ length: blocks }, (_, block) => sha256(joined(seed, toBytes(BigInt(block), 8))));
  return new Tape(joined(...(await Promise.all(counted))));
}
