import { need, Refused, SottovoceError, Unreachable } from "./errors.js";

const LONGEST = 10_000; // milliseconds that a collector has for an answer
const QUIETLY = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" };

/** What a body says; of another thing than an object nothing. */
export const read = async (body) => (await body.json().catch(() => null)) ?? {};

export async function download(url, path, options) {
  const address = `${`${url}`.replace(/\/+$/, "")}/v1/${path}`;
  let answer, body;
  try {
    answer = await fetch(address, { ...QUIETLY, signal: AbortSignal.timeout(LONGEST), ...options });
    body = new Response(await answer.arrayBuffer());
  } catch (cause) {
    throw new Unreachable(`collector: ${address} cannot be reached`, { cause });
  }
  if (!answer.ok) throw new Refused(answer.status, await read(body));
  return body;
}

async function post(reports, url, milliseconds) {
  const [first, ...others] = reports.map(({ json }) => json);
  const answer = await download(url, "reports", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(others.length ? { reports: [first, ...others] } : first),
    signal: AbortSignal.timeout(milliseconds),
  });
  const { stored, duplicates } = await read(answer);
  const isReceipt = [stored, duplicates].every((count) => Number.isInteger(count) && count >= 0);
  const isWhole = isReceipt && stored + duplicates === reports.length;
  need(isWhole, "collector: what answered did not acknowledge the reports", SottovoceError);
  return { stored, duplicates };
}

export async function send(reports, url, { seconds = 60 } = {}) {
  const end = performance.now() + 1000 * seconds;
  for (let pause = 50; ; pause = Math.min(2 * pause, 1000)) {
    let cause;
    try {
      const left = Math.ceil(end - performance.now());
      return await post([reports].flat(), url, Math.min(Math.max(left, 1), LONGEST));
    } catch (wrong) {
      if (wrong instanceof Refused && wrong.status < 500 && ![408, 429].includes(wrong.status)) throw wrong;
      cause = wrong;
    }
    // not all devices come back at once
    const wait = pause * (0.5 + globalThis.crypto.getRandomValues(new Uint8Array(1))[0] / 512);
    const late = performance.now() + wait >= end;
    if (late) throw new Unreachable(`collector: no acknowledgement within ${seconds} s; send again later`, { cause });
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
