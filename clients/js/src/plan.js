import { readSchema } from "./attributes.js";
import { LARGEST, sha256, toHex, utf8, whole } from "./bytes.js";
import { ratioOf } from "./encodings.js";
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

/** The largest sum of a cohort's deltas, if it is a small chance that nobody can bring about. */
function readDelta({ kinds }, people, coin) {
  const sums = kinds.map((asks) =>
    asks.reduce(([a, b], { delta: [c, d] = [0n, 1n] }) => [a * d + c * b, b * d], [0n, 1n]),
  );
  for (const [top, bottom] of sums) {
    need(1000n * top <= bottom && top * people < bottom, "plan: delta must be at most 1/1000 and below 1/people");
    need(!top || coin === "device", "plan: coin must be the device's in a plan with a delta");
  }
  return Math.max(...kinds.map((asks) => asks.reduce((sum, { delta }) => sum + (delta ? ratioOf(delta) : 0), 0)));
}

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
    this.people = Number(whole("plan: people", people, 1n, LARGEST));
    this.series = readSeries(series);
    this.schema = readSchema(schema);
    this.cohorts = readCohorts(cohorts, this.schema);
    need(keeps(largest(this.cohorts, "epsilon"), this.epsilon), "plan: its asks cost more than its epsilon");
    this.delta = readDelta(this.cohorts, BigInt(this.people), coin);
    this.attributes = [...this.schema.values()].map(({ read, ...shown }) => ({
      ...shown,
      asked: this.cohorts.attributes.includes(shown.name),
    }));
    Object.freeze(this);
  }

  bestGuess(prior = 0.5) {
    return this.delta + (1 - this.delta) / (1 + ((1 - prior) / prior) * Math.exp(-this.epsilon));
  }

  explain() {
    const { epsilon, delta, cohorts } = this;
    const guess = this.bestGuess();
    const chance = delta ? `, with the chance of ${Number(delta.toPrecision(4))} that it tells more counted in` : "";
    return {
      epsilon,
      delta,
      guess,
      sentence: `Someone who sees your report can raise a 50% guess about you to at most ${Math.round(100 * guess)}%${chance}.`,
      asked: cohorts.attributes,
      cohorts: Number(cohorts.count),
      rounds: this.series.shares.length,
      bytes: largest(cohorts, "bytes"),
    };
  }
}
