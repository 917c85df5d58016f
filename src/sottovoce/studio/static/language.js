// The sentences of the participant's page: a catalogue of one language, which the page brings along.

let sentences = {};

/** From now on the page speaks so. */
export function useSentences(catalogue) {
  sentences = catalogue;
}

/** A sentence by its name, with what stands in braces filled in. */
export const say = (name, parts = {}) => sentences[name].replace(/\{(\w+)\}/g, (_, part) => parts[part]);
