/** A device's side of local differential privacy: the true answer never leaves it, only a whisper does. */

/** Base of all errors thrown on purpose. No message contains a person's answer. */
export class SottovoceError extends Error {}
/** An argument, a plan or a record breaks a stated rule. */
export class InvalidInput extends SottovoceError {}
/** Two things that must belong to one plan belong to different ones; or a plan's hash is not its id. */
export class PlanMismatch extends SottovoceError {}
/** This device was drawn into another round of the series and must stay silent in this one. */
export class NotInThisRound extends SottovoceError {}
/** The plan asks about an attribute on which this device would spend more than its cap. Nothing was drawn. */
export class BudgetExceeded extends SottovoceError {}
/** The collector said no, and why (RFC 9457). */
export class Refused extends SottovoceError {
  readonly status: number;
  readonly type: string | undefined;
}
/** The collector could not be reached, or did not acknowledge in time. A report is kept: send it again later. */
export class Unreachable extends SottovoceError {}

export type Value = string | number | boolean;

/**
 * A person's true values by attribute. It stays on the device. Integers beyond 2^53 are BigInts or text; a set is an
 * iterable of its members, or text with semicolons between them. Null is no value, as a missing one is.
 */
export type PersonRecord = { readonly [attribute: string]: Value | bigint | Iterable<Value | bigint> | null };

/** What a page needs to ask for an attribute. */
export interface Attribute {
  readonly name: string;
  readonly kind: "boolean" | "categorical" | "ordinal" | "integer" | "text" | "items" | "fixed-point";
  readonly sensitive: boolean;
  /** Whether any ask reads it; others may be missing from a record. */
  readonly asked: boolean;
  /** Whether it leaves in clear, beside the whisper; a record must have it. */
  readonly public: boolean;
  /** How many codes it has; 2^64 for text. */
  readonly size: bigint;
  /** integer: the most bits of a value. Else the bits of what a question about popular values reads. */
  readonly bits: number;
  /** What a value must be, in words. */
  readonly rule: string;
  /** The name of each code (of each item of a set), in order; null if there are more than 4096, and for text. */
  readonly labels: readonly Value[] | null;
  /** categorical, items: the list, if it is one. */
  readonly values?: readonly Value[];
  /** categorical, items: start, stop (not included) and step, if it is a range. */
  readonly range?: readonly [number, number, number];
  /** ordinal: the smallest and the largest number, and how many bins they fall into (null: every number is its own). */
  readonly low?: number | string;
  readonly high?: number | string;
  readonly bins?: number | null;
  /** fixed-point: the most digits after the point; its ends are decimals, as text. */
  readonly decimals?: number;
  /** text: the most bytes of UTF-8. */
  readonly bytes?: number;
  /** text: the only characters there are, and the one of them that stands for all others. */
  readonly alphabet?: string;
  /** Else: the value that is reported for a person whose own is none of the schema's. */
  readonly other?: Value;
  /** text: what becomes of longer text; it is refused unless this says "cut". */
  readonly longer?: "refuse" | "cut";
}

/** What somebody can learn of a person, in numbers and in words. */
export interface Promised {
  readonly epsilon: number;
  /** The chance that it tells more than epsilon allows; 0 for most plans, and at most 1/1000. */
  readonly delta: number;
  /** What a 50% guess about a person can rise to, by whatever they will ever send under the plan, delta counted in. */
  readonly guess: number;
  /** The same in words. */
  readonly sentence: string;
}

/** What a person should know before answering: the worst case, and what else. */
export interface Explanation extends Promised {
  /**
   * Against whom a plan promises what, the worst case last. A plan that names shufflers' keys has three promises: against
   * the analyst, the analyst with everybody else, and the analyst with all shufflers; others have one.
   */
  readonly promises: readonly Promised[];
  /** The attributes that may be asked for. */
  readonly asked: readonly string[];
  /** The attributes that leave in clear; the guarantee is about the others, given these. */
  readonly public: readonly string[];
  readonly cohorts: number;
  readonly rounds: number;
  /** The most bytes that the answers take in a report. */
  readonly bytes: number;
}

/** Who mixes the reports of a plan before anybody opens them, and what that promises. */
export interface Shuffling {
  /** What an analyst learns who sees a batch of at least `least` people. */
  readonly epsilon: number;
  readonly delta: number;
  readonly least: number;
  /** Reports of nobody, which the shufflers add. */
  readonly fakes: number;
  /** With fakes: the epsilon against an analyst to whom everybody else tells their reports. */
  readonly colluding: number | null;
  /** Public keys (X25519): those of the shufflers in turn, and the collector's last; none if no report is sealed. */
  readonly hops: readonly string[];
}

/** A plan: public, frozen, named by the SHA-256 of its bytes. */
export class Plan {
  private constructor();
  /** The plan of an id, from the collector at `url`; refused unless the bytes received hash to it. */
  static fetch(url: string | URL, options: { id: string }): Promise<Plan>;
  /** A plan from its bytes or text; refused unless it hashes to `id`, and unless its coins keep its epsilon. */
  static parse(stored: Uint8Array | ArrayBuffer | string, options?: { id?: string }): Promise<Plan>;
  readonly id: string;
  readonly coin: "device" | "assigned";
  readonly epsilon: number;
  /** The chance that a report tells more than epsilon allows; 0 for most plans, and at most 1/1000. */
  readonly delta: number;
  /** What answering takes from the account of each attribute it asks about, in billionths. */
  readonly cost: { readonly epsilon: number; readonly delta: number };
  /** How many are expected to take part. */
  readonly people: number;
  readonly attributes: readonly Attribute[];
  /** Null if nobody mixes its reports. */
  readonly shuffling: Shuffling | null;
  /** What leaves in clear, in order. */
  readonly columns: readonly { readonly name: string; readonly rule: string }[];
  /** The most that a lifetime of reports can raise a guess that was right with probability `prior` (0.5). */
  bestGuess(prior?: number): number;
  explain(): Explanation;
}

/** A report as the collector takes it. */
export interface ReportJson {
  readonly id: string;
  readonly sottovoce: 1;
  readonly plan: string;
  readonly cohort: number;
  readonly payload: string;
  /** The public columns in clear; a fixed-point number as text with all its decimals. */
  readonly public?: { readonly [attribute: string]: Value };
  readonly expires?: number;
  readonly signature?: string;
}

/** One person's whisper: all that leaves the device; sealed, if its plan names the keys of shufflers. */
export class Report {
  /** `inClear`: the bytes of its public values, for a plan that has any; `onion`: the report as it is sent, if sealed. */
  constructor(json: ReportJson, inClear?: Uint8Array, onion?: Uint8Array | null);
  /** 32 hexadecimal digits. However often a report is sent, under its id it counts once. */
  readonly id: string;
  readonly json: ReportJson;
  /** The compact form: version, plan, cohort, payload, public values, checksum. */
  readonly bytes: Uint8Array;
  /** What is sent of a report that is sealed, and always the same bytes; null of one that is not. */
  readonly onion: Uint8Array | null;
}

/** Whether WebCrypto here has X25519 (browsers since 2025, Node 20): without it no report is sealed. */
export function canSeal(): Promise<boolean>;

/** A new report id: the minute and 10 random bytes. */
export function newId(now?: number): string;

/** Where a device keeps what it drew. A memory that lasts is what keeps a lifetime's cost at the plan's epsilon. */
export interface Memory {
  /** Whether other tabs or workers use it too: then a report is drawn only where there are locks (navigator.locks). */
  readonly isShared?: boolean;
  get(key: string): string | null | Promise<string | null>;
  set(key: string, value: string): void | Promise<void>;
}
/** Lasts as long as the page or process. */
export class PlainMemory implements Memory {
  get(key: string): string | null;
  set(key: string, value: string): void;
}
/** The browser's localStorage. */
export class BrowserMemory implements Memory {
  readonly isShared: true;
  get(key: string): string | null;
  set(key: string, value: string): void;
}

/** A source of uniform bytes; make one's own only for tests. */
export abstract class Entropy {
  abstract bytes(count: number): Uint8Array;
}
/** WebCrypto's generator: the default. */
export class System extends Entropy {
  bytes(count: number): Uint8Array;
}
/** Fixed bytes, read front to back. Never for a person's report. */
export class Tape extends Entropy {
  constructor(data: Uint8Array);
  readonly position: number;
  bytes(count: number): Uint8Array;
}

/** Cohort and hashes that a collector hands out, signed, for a plan whose coin is assigned. */
export class Assignment {
  static fetch(url: string | URL, plan: Plan): Promise<Assignment>;
  constructor(json: { plan: string; id: string; expires: number; signature: string });
  readonly plan: string;
  readonly id: string;
  /** Unix time in seconds. */
  readonly expires: number;
  readonly signature: string;
}

/** One person's device. It draws once for a plan, and gives that report again however often it is asked. */
export class Client {
  constructor(
    plan: Plan,
    options?: {
      /** Where the report is kept; by default for as long as this client lives. Required for several rounds. */
      memory?: Memory;
      entropy?: Entropy;
      /** For a plan whose coin is assigned: an assignment, or what fetches one when it is needed. */
      assignment?: Assignment | (() => Assignment | Promise<Assignment>);
      /**
       * What becomes of a value that is missing or that the schema does not have: the attribute's `other` or a drawn
       * one is reported ("draw", the default, since silence would tell), or `report` rejects ("raise").
       */
      invalid?: "draw" | "raise";
      /** The most that all plans together may spend on one attribute, kept in the memory: epsilon (10), delta (0.01). */
      cap?: number;
      deltaCap?: number;
    },
  );
  /** The whisper for a record: drawn the first time, and the same one ever after, whatever the record is then. */
  report(record: PersonRecord): Promise<Report>;
  /** The report that was drawn before, or null. */
  recall(): Promise<Report | null>;
}

/**
 * Send a report, or several of them, until the collector at `url` acknowledges them; of a sealed report, the first
 * shuffler there. Tries again on a lost connection, 5xx, 408 and 429, with pauses of at most a second, for at most
 * `seconds` (60); any other refusal ends it at once. A report that must be sealed and is not is refused. A shuffler does
 * not say whether it had a report before: of sealed ones `stored` counts all.
 */
export function send(
  reports: Report | readonly Report[],
  url: string | URL,
  options?: { seconds?: number },
): Promise<{ stored: number; duplicates: number }>;
