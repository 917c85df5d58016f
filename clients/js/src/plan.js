import { readSchema } from "./attributes.js";
import { billionths, LARGEST, option, sha256, toHex, utf8 } from "./bytes.js";
import { readColumns } from "./columns.js";
import { ratioOf } from "./encodings.js";
import { InvalidInput, keys, need, only, PlanMismatch, SottovoceError } from "./errors.js";
import { largest, readCohorts } from "./families.js";
import { keeps, readEpsilon } from "./oracles.js";
import { download } from "./send.js";
import { isId, isSmall, readShuffling, sealedPlans } from "./shuffling.js";

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

/** The sums of each cohort's deltas, if they are small chances that nobody can bring about. */
function readDeltas({ kinds }, people, coin) {
  const sums = kinds.map((asks) =>
    asks.reduce(([a, b], { delta: [c, d] = [0n, 1n] }) => [a * d + c * b, b * d], [0n, 1n]),
  );
  for (const delta of sums) {
    need(isSmall(delta, people), "plan: delta must be at most 1/1000 and below 1/people");
    need(!delta[0] || coin === "device", "plan: coin must be the device's in a plan with a delta");
  }
  return sums;
}

/** In four digits, rounded up. */
function atMost(value) {
  const [digits, power] = value.toExponential(3).split("e");
  const more = Number(`${digits}e${power}`) < value * (1 - 1e-12) ? 0.001 : 0;
  return Number(Number(`${Number(digits) + more}e${power}`).toPrecision(4));
}

const guessOf = (epsilon, delta, prior) => delta + (1 - delta) / (1 + ((1 - prior) / prior) * Math.exp(-epsilon));

/** What somebody can learn, in numbers and in words. */
function promised(who, epsilon, delta) {
  const guess = guessOf(epsilon, delta, 0.5);
  const percent = Math.min(1000, Math.ceil(1000 * (guess + 1e-12))) / 10; // rounded up, as a promise is
  const chance = delta ? `, with the chance of ${atMost(delta)} that it tells more counted in` : "";
  return { epsilon, delta, guess, sentence: `${who} can raise a 50% guess about you to at most ${percent}%${chance}.` };
}

/** Against the analyst, the analyst with everybody else, the analyst with all shufflers: the worst case, last. */
function threePromises(own, { epsilon, delta, least, colluding }) {
  const crowd = `The analyst, who sees your report only mixed into those of at least ${least.toLocaleString("en")} people,`;
  const others = "The analyst, if everybody else tells her theirs,";
  const isLess = colluding !== null && colluding < own;
  return [
    promised(crowd, epsilon, delta),
    promised(others, isLess ? colluding : own, isLess ? delta : 0),
    promised("The analyst together with all shufflers, who can tell which report is yours,", own, 0),
  ];
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
    const [isPublic, isShuffled] = ["public", "shuffle"].map((key) => Object.hasOwn(body, key));
    need(sottovoce === 1, "plan: the format version must be 1");
    keys(body, "sottovoce,schema,question,epsilon,people,coin(,public)?(,shuffle)?,series,cohorts");
    keys(question, `kind,${only("question", question.kind, QUESTIONS)}`);
    option(body, "people", 1n, LARGEST);
    only("coin", coin, { device: 1, assigned: 1 });
    this.id = id;
    this.coin = coin;
    const own = readEpsilon(epsilon);
    this.epsilon = own.epsilon;
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
    const crowd = BigInt(people);
    const deltas = readDeltas(this.cohorts, crowd, coin);
    const { shares, round } = this.series;
    const roundPeople = (crowd * shares[round]) / shares.reduce((total, share) => total + share);
    this.shuffling = isShuffled ? readShuffling(body.shuffle, own, crowd, roundPeople) : null;
    const isNameless = coin === "device" && !this.columns.length && deltas.every(([top]) => !top);
    need(!isShuffled || isNameless, "plan: a shuffled plan has the device's coin, nothing in clear and no ask with a delta");
    if (this.shuffling?.hops.length) sealedPlans.add(id);
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
    return guessOf(this.epsilon, this.delta, prior);
  }

  explain() {
    const { epsilon, delta, cohorts, shuffling } = this;
    const own = promised("Someone who sees your report", epsilon, delta);
    const promises = shuffling?.hops.length ? threePromises(epsilon, shuffling) : [own];
    return {
      ...promises.at(-1),
      promises,
      asked: cohorts.attributes,
      public: this.columns.map(({ name }) => name),
      cohorts: Number(cohorts.count),
      rounds: this.series.shares.length,
      bytes: largest(cohorts, "bytes"),
    };
  }
}
