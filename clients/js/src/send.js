import { need, Refused, SottovoceError, Unreachable } from "./errors.js";
import { sealedPlans } from "./shuffling.js";

const LONGEST = 10_000; // milliseconds that a collector has for an answer
const QUIETLY = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };

/** What a body says; of another thing than an object nothing. */
export const read = async (body) => (await body.json().catch(() => null)) ?? {};

const takerOf = (path) => (path.startsWith("onions/") ? "shuffler" : "collector");

export async function download(url, path, options) {
  const who = takerOf(path);
  const address = `${`${url}`.replace(/\/+$/, "")}/v1/${path}`;
  let answer, body;
  try {
    answer = await fetch(address, { ...QUIETLY, signal: AbortSignal.timeout(LONGEST), ...options });
    body = new Response(await answer.arrayBuffer());
  } catch (cause) {
    throw new Unreachable(`${who}: ${address} cannot be reached`, { cause });
  }
  if (!answer.ok) throw new Refused(who, answer.status, await read(body));
  return body;
}

/** Path, type, body and number of reports of each message: onions go one by one. */
function messages(reports) {
  const [made, open] = [[], []];
  for (const { onion, json } of reports) {
    if (onion) made.push([`onions/${json.plan}`, "vnd.sottovoce.onions", onion, 1]);
    else open.push(json);
    need(onion || !sealedPlans.has(json.plan), "report: it is not sealed, as reports of its plan must be");
  }
  const body = () => JSON.stringify(open.length > 1 ? { reports: open } : open[0]);
  return open.length ? [...made, ["reports", "json", body(), open.length]] : made;
}

async function post([path, type, body, count], url, milliseconds) {
  const answer = await download(url, path, {
    method: "POST",
    headers: { "Content-Type": `application/${type}` },
    body,
    signal: AbortSignal.timeout(milliseconds),
  });
  const { taken, stored = taken, duplicates = taken && 0 } = await read(answer); // a shuffler says how many it took
  const isReceipt = [stored, duplicates].every((number) => Number.isInteger(number) && number >= 0);
  need(isReceipt && stored + duplicates === count, `${takerOf(path)}: what answered did not acknowledge it`, SottovoceError);
  return { stored, duplicates };
}

export async function send(reports, url, { seconds = 60 } = {}) {
  const end = performance.now() + 1000 * seconds;
  const total = { stored: 0, duplicates: 0 };
  for (const message of messages([reports].flat())) {
    const { stored, duplicates } = await sendOne(message, url, seconds, end);
    total.stored += stored;
    total.duplicates += duplicates;
  }
  return total;
}

async function sendOne(message, url, seconds, end) {
  for (let pause = 50; ; pause = Math.min(2 * pause, 1000)) {
    let cause;
    try {
      const left = Math.ceil(end - performance.now());
      return await post(message, url, Math.min(Math.max(left, 1), LONGEST));
    } catch (wrong) {
      if (wrong instanceof Refused && wrong.status < 500 && ![408, 429].includes(wrong.status)) throw wrong;
      cause = wrong;
    }
    // not all devices come back at once
    const wait = pause * (0.5 + globalThis.crypto.getRandomValues(new Uint8Array(1))[0] / 512);
    const late = performance.now() + wait >= end;
    if (late) throw new Unreachable(`${takerOf(message[0])}: no acknowledgement within ${seconds} s; send again later`, { cause });
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
