import { fromHex, LARGEST, whole } from "./bytes.js";
import { Assigned, stream } from "./entropy.js";
import { need, PlanMismatch } from "./errors.js";
import { download, read } from "./send.js";

const BLOCKS = 32; // for the cohort's ticket: too few with a chance below 2^-100
const BLOCKS_PER_ASK = 8;

export class Assignment {
  static async fetch(url, plan) {
    return new Assignment(await read(await download(url, `plans/${plan.id}/assignment`)));
  }

  constructor({ plan, id, expires, signature }) {
    fromHex("assignment: id", id, 16);
    fromHex("assignment: signature", signature, 32);
    whole("assignment: expires", expires, 0n, LARGEST);
    Object.freeze(Object.assign(this, { plan, id, expires, signature }));
  }

  check(plan) {
    need(this.plan === plan.id, "assignment: it belongs to another plan", PlanMismatch);
    need(this.expires * 1000 > Date.now(), "assignment: it has expired; ask for another one");
  }

  async entropy(plan, own) {
    this.check(plan);
    const asks = Math.max(...plan.cohorts.kinds.map((oracles) => oracles.length));
    return new Assigned(await stream(fromHex("signature", this.signature), BLOCKS + BLOCKS_PER_ASK * asks), own);
  }
}
