// The plan: public, frozen, named by the hash of its bytes; refused unless it keeps its promise.

import { encode, readSchema } from "./attributes.js";
import { LARGEST, sha256, toHex, whole } from "./bytes.js";
import { InvalidInput, need, PlanMismatch, SottovoceError } from "./errors.js";
import { readCohorts } from "./families.js";
import { keeps, readEpsilon } from "./oracles.js";
import { download } from "./send.js";

const isId = (text) => /^[0-9a-f]{64}$/.test(text);
const sum = (parts, key) => parts.reduce((total, part) => total + part[key], 0);

function readSeries({ shares, round, origin, parent }) {
  const series = { shares: shares.map((share) => whole("plan: share", share, 1n, LARGEST)), round, origin };
  whole("plan: round", round, 0n, BigInt(shares.length - 1));
  const named = [origin, parent].every((id) => (round ? isId(id) : id === null));
  need(named, "plan: origin and parent must be ids of plans in every round but the first");
  return series;
}

export class Plan {
  static async fetch(url, { id }) {
    need(isId(id), "id must be a plan's: 64 hexadecimal digits");
    return Plan.parse(await (await download(url, `plans/${id}`)).arrayBuffer(), { id });
  }

  static async parse(stored, { id } = {}) {
    const bytes = typeof stored === "string" ? new TextEncoder().encode(stored) : new Uint8Array(stored);
    const own = toHex(await sha256(bytes));
    need(id === undefined || own === id, "plan: its hash is not the id; it was changed", PlanMismatch);
    try {
      return new Plan(own, JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
    } catch (wrong) {
      throw wrong instanceof SottovoceError ? wrong : new InvalidInput("plan: a part is missing or malformed");
    }
  }

  constructor(id, { sottovoce, coin, epsilon, people, series, schema, cohorts }) {
    need(sottovoce === 1, "plan: the format version must be 1");
    need(coin === "device" || coin === "assigned", "plan: coin must be device or assigned");
    this.id = id;
    this.coin = coin;
    this.epsilon = readEpsilon(epsilon);
    this.people = people;
    this.series = readSeries(series);
    this.schema = readSchema(schema);
    this.cohorts = readCohorts(cohorts, this.schema);
    const affordable = this.cohorts.kinds.every((oracles) => keeps(sum(oracles, "epsilon"), this.epsilon));
    need(affordable, "plan: its asks cost more than the epsilon it promises");
    this.attributes = [...this.schema.values()].map(({ code, ...shown }) => ({
      ...shown,
      asked: this.cohorts.attributes.includes(shown.name),
    }));
    Object.freeze(this);
  }

  bestGuess(prior = 0.5) {
    return 1 / (1 + ((1 - prior) / prior) * Math.exp(-this.epsilon));
  }

  explain() {
    const guess = this.bestGuess();
    const { attributes: asked, count, kinds } = this.cohorts;
    return {
      epsilon: this.epsilon,
      guess,
      sentence: `Someone who sees your report can raise a 50% guess about you to at most ${Math.round(100 * guess)}%.`,
      asked,
      cohorts: Number(count),
      rounds: this.series.shares.length,
      bytes: Math.max(...kinds.map((oracles) => sum(oracles, "bytes"))),
    };
  }

  /** Of all that any cohort is asked, so that a record does not tell the cohort. */
  encode(record) {
    return encode(this.schema, record, this.cohorts.attributes);
  }
}
