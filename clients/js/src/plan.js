import { readSchema } from "./attributes.js";
import { LARGEST, sha256, toHex, utf8, whole } from "./bytes.js";
import { InvalidInput, need, only, PlanMismatch, SottovoceError } from "./errors.js";
import { readCohorts } from "./families.js";
import { keeps, readEpsilon } from "./oracles.js";
import { download } from "./send.js";

const isId = (text) => /^[0-9a-f]{64}$/.test(text);

function readSeries({ shares, round, origin, parent }) {
  const series = { shares: shares.map((share) => whole("plan: share", share, 1n, LARGEST)), round, origin };
  whole("plan: round", round, 0n, BigInt(shares.length - 1));
  const named = [origin, parent].every((id) => (round ? isId(id) : id === null));
  need(named, "plan: origin and parent must be ids of plans in every round but the first");
  return series;
}

/** The most that a cohort's asks have of something. */
const largest = ({ kinds }, what) =>
  Math.max(...kinds.map((asks) => asks.reduce((total, ask) => total + (ask[what] ?? 0), 0)));

export class Plan {
  static async fetch(url, { id }) {
    need(isId(id), "id must be a plan's: 64 hexadecimal digits");
    return Plan.parse(await (await download(url, `plans/${id}`)).arrayBuffer(), { id });
  }

  static async parse(stored, { id } = {}) {
    const bytes = typeof stored === "string" ? utf8(stored) : new Uint8Array(stored);
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
    only("coin", coin, { device: 1, assigned: 1 });
    this.id = id;
    this.coin = coin;
    this.epsilon = readEpsilon(epsilon);
    this.people = people;
    this.series = readSeries(series);
    this.schema = readSchema(schema);
    this.cohorts = readCohorts(cohorts, this.schema);
    need(keeps(largest(this.cohorts, "epsilon"), this.epsilon), "plan: its asks cost more than its epsilon");
    this.delta = largest(this.cohorts, "delta");
    this.attributes = [...this.schema.values()].map(({ read, ...shown }) => ({
      ...shown,
      asked: this.cohorts.attributes.includes(shown.name),
    }));
    Object.freeze(this);
  }

  bestGuess(prior = 0.5) {
    return 1 / (1 + ((1 - prior) / prior) * Math.exp(-this.epsilon));
  }

  explain() {
    const { epsilon, delta, cohorts } = this;
    const guess = this.bestGuess();
    const most = `${Math.round(100 * guess)}%${delta ? `, but for a chance of ${Number(delta.toPrecision(2))}` : ""}`;
    return {
      epsilon,
      delta,
      guess,
      sentence: `Someone who sees your report can raise a 50% guess about you to at most ${most}.`,
      asked: cohorts.attributes,
      cohorts: Number(cohorts.count),
      rounds: this.series.shares.length,
      bytes: largest(cohorts, "bytes"),
    };
  }
}
