// What tests read from the project.

import { readFileSync } from "node:fs";

export const VECTORS = JSON.parse(readFileSync(new URL("../../../tests/vectors/v1.json", import.meta.url), "utf8"));
export const ONIONS = JSON.parse(readFileSync(new URL("../../../tests/vectors/onions.json", import.meta.url), "utf8"));

/** The vectors of a plan. */
export const entryOf = (name) => VECTORS.plans.find((entry) => entry.name === name);
