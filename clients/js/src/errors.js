// Messages name the rule, never a person's answer.

export class SottovoceError extends Error {
  name = "SottovoceError";
}

export class InvalidInput extends SottovoceError {
  name = "InvalidInput";
}

export class PlanMismatch extends SottovoceError {
  name = "PlanMismatch";
}

export class NotInThisRound extends SottovoceError {
  name = "NotInThisRound";
}

export class BudgetExceeded extends SottovoceError {
  name = "BudgetExceeded";
}

export class Refused extends SottovoceError {
  name = "Refused";

  constructor(who, status, { type, title = `status ${status}`, detail = "" }) {
    super(`${who}: ${title}${detail && `: ${detail}`}`);
    this.status = status;
    this.type = type;
  }
}

export class Unreachable extends SottovoceError {
  name = "Unreachable";
}

export function need(holds, rule, Kind = InvalidInput) {
  if (!holds) throw new Kind(rule);
}

export function only(what, name, known) {
  need(typeof name === "string" && Object.hasOwn(known, name), `plan: ${what} must be one of ${Object.keys(known).join(", ")}`);
  return known[name];
}

/** Keys of letters and digits: joined by commas, no two lists of them are the same text. */
export const keys = (part, known) => {
  const found = Object.keys(part);
  const isKnown = found.every((key) => /^\w+$/.test(key)) && new RegExp(`^${known}$`).test(found);
  need(isKnown, `plan: the keys of a part must be ${known}`);
};
