import { encode, substitute } from "./attributes.js";
import { fromHex, toHex } from "./bytes.js";
import { inClear } from "./columns.js";
import { System } from "./entropy.js";
import { BudgetExceeded, InvalidInput, need, NotInThisRound } from "./errors.js";
import { shareOf } from "./families.js";
import { PlainMemory } from "./memory.js";
import { whispers } from "./oracles.js";
import { newId, Report } from "./report.js";
import { needSealing, seal } from "./seal.js";

const waiting = new Map();

const locks = () => globalThis.navigator?.locks;

/** One thing after another, across the tabs of a browser if it has locks. */
function exclusive(name, work) {
  if (locks()) return locks().request(name, work);
  const turn = (waiting.get(name) ?? Promise.resolve()).then(work);
  waiting.set(name, turn.catch(() => {}));
  return turn;
}

export class Client {
  #plan;
  #memory;
  #entropy;
  #assignment;
  #series;
  #isStrict;
  #isSealed;
  #caps;

  constructor(plan, { memory, entropy = new System(), assignment, invalid = "draw", cap = 10, deltaCap = 0.01 } = {}) {
    need(["draw", "raise"].includes(invalid), "invalid must be draw or raise");
    need(cap >= 0 && deltaCap >= 0, "caps must be at least 0");
    need(plan.series.shares.length === 1 || memory, "memory is required for a plan of several rounds");
    need(plan.coin === "assigned" || !assignment, "assignment is only for a plan whose coin is assigned");
    this.#plan = plan;
    this.#memory = memory ?? new PlainMemory();
    this.#entropy = entropy;
    this.#assignment = assignment;
    this.#series = plan.series.origin ?? plan.id;
    this.#isSealed = plan.shuffling?.hops.length > 0;
    this.#isStrict = invalid === "raise";
    this.#caps = Object.entries({ epsilon: cap, delta: deltaCap });
  }

  report(record) {
    return exclusive(`sottovoce/${this.#series}`, async () => (await this.recall()) ?? this.#draw(record));
  }

  async recall() {
    const kept = await this.#get(this.#plan.id);
    if (!kept) return null;
    const { onion, ...json } = kept;
    const isFit = json.plan === this.#plan.id && (onion !== undefined) === this.#isSealed;
    need(isFit, "memory: its memo does not fit the plan");
    const open = inClear(this.#plan.columns, json.public).bytes;
    return new Report(json, open, onion && fromHex("memory: onion", onion));
  }

  async #get(name) {
    const text = await this.#memory.get(`sottovoce/${name}`);
    try {
      return JSON.parse(text ?? null);
    } catch {
      throw new InvalidInput("memory: its memo is damaged");
    }
  }

  #set(name, value) {
    return this.#memory.set(`sottovoce/${name}`, JSON.stringify(value));
  }

  async #draw(record) {
    const plan = this.#plan;
    const given = this.#assignment;
    need(locks() || !this.#memory.isShared, "memory: tabs share it, and without locks (navigator.locks) each would draw");
    const open = inClear(plan.columns, record); // before any coin
    given?.check?.(plan);
    if (this.#isSealed) await needSealing();
    const answered = await this.#joinRound();
    const read = await encode(plan, record, this.#isStrict);
    const assignment = typeof given === "function" ? await given() : given;
    need(plan.coin === "device" || assignment, "assignment is required for a plan whose coin is assigned");
    const entropy = assignment ? await assignment.entropy(plan, this.#entropy) : this.#entropy;
    await exclusive("sottovoce/account", () => this.#charge());
    await answered();
    const { cohort, asks } = plan.cohorts.at(entropy.public.below(plan.cohorts.weight));
    substitute(plan, read, entropy);
    const payload = whispers(asks, read, entropy);
    const onion = this.#isSealed ? await seal(plan, cohort, payload, entropy) : null;
    const { id = newId(), ...signed } = assignment ?? {};
    const report = new Report(
      { id, sottovoce: 1, ...signed, plan: plan.id, cohort, payload: toHex(payload), ...(plan.columns.length && { public: open.json }) },
      open.bytes,
      onion,
    );
    // both at once: another onion of a report that was sent would count again
    await this.#set(plan.id, { ...report.json, ...(onion && { onion: toHex(onion) }) });
    return report;
  }

  /** What a new plan costs is spent on every attribute that it reads, in billionths, or on none. */
  async #charge() {
    const { cost, cohorts } = this.#plan;
    const account = new Map(Object.entries((await this.#get("account")) ?? {}));
    for (const name of cohorts.attributes) {
      const spent = { ...(account.get(name) ?? { epsilon: 0, delta: 0 }) };
      for (const [part, cap] of this.#caps) {
        need(Number.isSafeInteger(spent[part]) && spent[part] >= 0, "memory: its account is damaged");
        const passes = `${part} ${spent[part] / 1e9} was spent and ${cost[part] / 1e9} more would pass the cap of ${cap}`;
        spent[part] += cost[part];
        need(spent[part] <= cap * 1e9, `attribute '${name}': ${passes}`, BudgetExceeded);
      }
      account.set(name, spent);
    }
    await this.#set("account", Object.fromEntries(account));
  }

  /** A round is drawn once, and one plan of it is answered. */
  async #joinRound() {
    const { id, series } = this.#plan;
    if (series.shares.length === 1) return () => {};
    const name = `round/${this.#series}`;
    let member = await this.#get(name);
    if (!member) {
      const total = series.shares.reduce((sum, share) => sum + share);
      const [round] = shareOf(this.#entropy.below(total), series.shares);
      member = { shares: `${series.shares}`, round };
      await this.#set(name, member);
    }
    const silent = (holds, why) => need(holds, `this device ${why}`, NotInThisRound);
    silent(member.shares === `${series.shares}`, "joined the series when its rounds had other shares");
    silent(member.round === series.round, `belongs to another round than round ${series.round}`);
    silent(id === (member.plan ?? id), "has answered another plan of this round");
    return () => this.#set(name, { ...member, plan: id });
  }
}
