import { readSchema } from "./attributes.js";
import { billionths, LARGEST, option, sha256, toHex, utf8 } from "./bytes.js";
import { readColumns } from "./columns.js";
import { ratioOf } from "./encodings.js";
import { InvalidInput, keys, need, only, PlanMismatch, SottovoceError } from "./errors.js";
import { readCohorts } from "./families.js";
import { keeps, readEpsilon } from "./oracles.js";
import { download } from "./send.js";

const isId = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

function readSeries(data) {
  keys(data, "shares,round,origin,parent");
  const { shares, round, origin, parent } = data;
  const series = { shares: shares.map((_, place) => option(shares, place, 1n, LARGEST)), round, origin };
  option(data, "round", 0n, BigInt(shares.length - 1));
  const named = [origin, parent].every((id) => (round ? isId(id) : id === null));
  need(named, "plan: origin and parent must be ids of plans in every round but the first");
  return series;
}

const OF_SETS = "attribute,top,method,options,round,known";

// asks: of the test vectors
const QUESTIONS = {
  frequencies: "attributes,oracle,split,options",
  marginals: "up_to,attributes,workload,method,options",
  "heavy-hitters": "attribute,top,above,method,options",
  queries: "dimensions,measures,workload,method,options",
  "top-items": OF_SETS,
  "top-itemsets": OF_SETS,
  asks: "name",
};

/** The most that a cohort's asks have of something. */
const largest = ({ kinds }, what) =>
  Math.max(...kinds.map((asks) => asks.reduce((total, ask) => total + (ask[what] ?? 0), 0)));

/** The sums of each cohort's deltas, if they are small chances that nobody can bring about. */
function readDeltas({ kinds }, people, coin) {
  const sums = kinds.map((asks) =>
    asks.reduce(([a, b], { delta: [c, d] = [0n, 1n] }) => [a * d + c * b, b * d], [0n, 1n]),
  );
  for (const [top, bottom] of sums) {
    need(1000n * top <= bottom && top * people < bottom, "plan: delta must be at most 1/1000 and below 1/people");
    need(!top || coin === "device", "plan: coin must be the device's in a plan with a delta");
  }
  return sums;
}

/** In four digits, rounded up. */
function atMost(value) {
  const [digits, power] = value.toExponential(3).split("e");
  const more = Number(`${digits}e${power}`) < value * (1 - 1e-12) ? 0.001 : 0;
  return Number(Number(`${Number(digits) + more}e${power}`).toPrecision(4));
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
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      const body = JSON.parse(text);
      const plan = new Plan(own, body);
      need(text === `${JSON.stringify(body, null, 1)}\n`, "plan: its text must be written as sottovoce writes it");
      return plan;
    } catch (wrong) {
      throw wrong instanceof SottovoceError ? wrong : new InvalidInput("plan: a part is missing or malformed");
    }
  }

  constructor(id, body) {
    const { sottovoce, question, coin, epsilon, people, series, schema, cohorts } = body;
    const isPublic = Object.hasOwn(body, "public");
    need(sottovoce === 1, "plan: the format version must be 1");
    keys(body, "sottovoce,schema,question,epsilon,people,coin(,public)?,series,cohorts");
    keys(question, `kind,${only("question", question.kind, QUESTIONS)}`);
    option(body, "people", 1n, LARGEST);
    only("coin", coin, { device: 1, assigned: 1 });
    this.id = id;
    this.coin = coin;
    this.epsilon = readEpsilon(epsilon).epsilon;
    this.people = people;
    this.series = readSeries(series);
    this.schema = readSchema(schema);
    this.cohorts = readCohorts(cohorts, this.schema);
    const isAsked = (name) => this.cohorts.attributes.includes(name);
    const isFixed = ({ kind, name }) => kind === "fixed-point" && isAsked(name);
    need(![...this.schema.values()].some(isFixed), "plan: a fixed-point number only ever travels in clear");
    need(!isPublic || body.public?.length > 0, "plan: public must be a list of names");
    this.columns = readColumns(isPublic ? body.public : [], this.schema);
    const inClear = this.columns.map(({ name }) => name);
    need(!inClear.some(isAsked), "plan: a whispered attribute must not travel in clear too");
    const measures = question.kind === "queries" ? question.measures : [];
    need(measures.every((name) => inClear.includes(name)), "plan: a measure must be public");
    need(keeps(largest(this.cohorts, "epsilon"), this.epsilon), "plan: its asks cost more than its epsilon");
    const deltas = readDeltas(this.cohorts, BigInt(this.people), coin);
    this.delta = Math.max(...deltas.map(ratioOf));
    this.cost = { epsilon: largest(this.cohorts, "cost"), delta: Math.max(...deltas.map(billionths)) };
    this.attributes = [...this.schema.values()].map(({ read, ...shown }) => ({
      ...shown,
      asked: isAsked(shown.name),
      public: inClear.includes(shown.name),
    }));
    Object.freeze(this);
  }

  bestGuess(prior = 0.5) {
    return this.delta + (1 - this.delta) / (1 + ((1 - prior) / prior) * Math.exp(-this.epsilon));
  }

  explain() {
    const { epsilon, delta, cohorts } = this;
    const guess = this.bestGuess();
    const percent = Math.min(1000, Math.ceil(1000 * (guess + 1e-12))) / 10; // rounded up, as a promise is
    const chance = delta ? `, with the chance of ${atMost(delta)} that it tells more counted in` : "";
    return {
      epsilon,
      delta,
      guess,
      sentence: `Someone who sees your report can raise a 50% guess about you to at most ${percent}%${chance}.`,
      asked: cohorts.attributes,
      public: this.columns.map(({ name }) => name),
      cohorts: Number(cohorts.count),
      rounds: this.series.shares.length,
      bytes: largest(cohorts, "bytes"),
    };
  }
}
