export { Assignment } from "./assignment.js";
export { Client } from "./client.js";
export { Entropy, System, Tape } from "./entropy.js";
export {
  BudgetExceeded,
  InvalidInput,
  NotInThisRound,
  PlanMismatch,
  Refused,
  SottovoceError,
  Unreachable,
} from "./errors.js";
export { BrowserMemory, PlainMemory } from "./memory.js";
export { Plan } from "./plan.js";
export { newId, Report } from "./report.js";
export { canSeal } from "./seal.js";
export { send } from "./send.js";
