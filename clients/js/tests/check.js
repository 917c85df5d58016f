// Runs the wire's vectors; the same code in Node and in a browser. Gives a list of what did not match.

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** The name of the error that a piece of work ends with, and its message; null if it ends well. */
async function failure(work) {
  try {
    await work();
    return null;
  } catch (wrong) {
    return wrong;
  }
}

/** A report of a vector's row, and how many bytes of entropy it took. */
async function drawn(sottovoce, plan, row, invalid = "raise") {
  const entropy = new sottovoce.Tape(bytesOf(row.entropy));
  const assignment = row.assignment && new sottovoce.Assignment(row.assignment);
  const memory = new sottovoce.PlainMemory();
  const client = new sottovoce.Client(plan, { entropy, assignment, memory, invalid, cap: 100, deltaCap: 9 });
  return { report: await client.report(row.record), used: entropy.position };
}

async function goodRow(sottovoce, plan, row) {
  const { report, used } = await drawn(sottovoce, plan, row);
  const { id, expires, signature, ...json } = report.json;
  const wrong = [];
  if (hex(report.bytes) !== row.report) wrong.push(`bytes ${hex(report.bytes)} are not ${row.report}`);
  if (JSON.stringify(Object.entries(json).sort()) !== JSON.stringify(Object.entries(row.json).sort())) {
    wrong.push(`json ${JSON.stringify(json)} is not ${JSON.stringify(row.json)}`);
  }
  if (2 * used !== row.entropy.length) wrong.push(`${used} bytes of entropy used, of ${row.entropy.length / 2}`);
  const onion = hex(report.onion ?? []);
  if (onion !== (row.onion ?? "")) wrong.push(`onion ${onion} is not ${row.onion}`);
  const given = row.assignment;
  if (id !== report.id || !/^[0-9a-f]{32}$/.test(id)) wrong.push(`id ${id} is none`);
  if (id.slice(8, 12) !== "0000") wrong.push(`id ${id} tells more than the minute`);
  if (given && (id !== given.id || expires !== given.expires || signature !== given.signature)) {
    wrong.push("the assignment was not passed on");
  }
  if (!given && (expires ?? signature) !== undefined) wrong.push("an assignment from nowhere");
  return wrong;
}

async function onPlan(sottovoce, entry) {
  const plan = await sottovoce.Plan.parse(new TextEncoder().encode(entry.plan), { id: entry.id });
  const wrong = [];
  for (const row of entry.good) wrong.push(...(await goodRow(sottovoce, plan, row)));
  for (const row of entry.silent) {
    const found = await failure(() => drawn(sottovoce, plan, row));
    if (found?.name !== "NotInThisRound") wrong.push(`a device of another round: ${found?.name}`);
  }
  for (const row of entry.bad_records) {
    const found = await failure(() => drawn(sottovoce, plan, { ...row, entropy: entry.good[0].entropy }));
    if (found?.name !== "InvalidInput") wrong.push(`${row.why}: ${found}`);
    if (row.secret && `${found?.message}`.includes(row.secret)) wrong.push(`${row.why}: the error tells the answer`);
  }
  for (const row of entry.bad_public ?? []) {
    for (const invalid of ["raise", "draw"]) {
      const found = await failure(() => drawn(sottovoce, plan, { ...entry.good[0], record: row.record }, invalid));
      if (found?.name !== "InvalidInput") wrong.push(`${row.why}: ${found}`);
      if (row.secret && `${found?.message}`.includes(row.secret)) wrong.push(`${row.why}: the error tells the answer`);
    }
  }
  for (const row of entry.substituted ?? []) {
    const { report, used } = await drawn(sottovoce, plan, row, "draw");
    if (hex(report.bytes) !== row.report) wrong.push(`${row.why}: bytes ${hex(report.bytes)} are not ${row.report}`);
    if (2 * used !== row.entropy.length) wrong.push(`${row.why}: ${used} bytes of entropy used`);
  }
  return wrong.map((line) => `${entry.name}: ${line}`);
}

/** Every mismatch, as lines; none if this implementation is the same. */
export async function mismatches(sottovoce, vectors) {
  const wrong = [];
  for (const entry of vectors.plans) {
    const found = await onPlan(sottovoce, entry).catch((error) => [`${entry.name}: ${error.stack}`]);
    wrong.push(...found);
  }
  for (const row of vectors.bad_plans) {
    const found = await failure(() => sottovoce.Plan.parse(row.plan, { id: row.id }));
    if (found?.name !== row.error) wrong.push(`plan with ${row.why}: ${found}`);
  }
  for (const row of vectors.spellings ?? []) {
    const found = await failure(() => sottovoce.Plan.parse(row.plan));
    if (found?.name !== "InvalidInput") wrong.push(`spelling with ${row.why}: ${found}`);
  }
  return wrong;
}

/** The same for the hashes, which are not exported: from the file that has them. */
export function hashMismatches({ keyedHash, bucket, scramble, permuted, tagOf }, { hashes }) {
  const wrong = [];
  const check = (what, found, wanted) => `${found}` === `${wanted}` || wrong.push(`${what}: ${found} is not ${wanted}`);
  for (const [key, value, word] of hashes.keyed_hash) check("keyed hash", keyedHash(BigInt(key), BigInt(value)), word);
  for (const [word, size, place] of hashes.bucket) check("bucket", bucket(BigInt(word), BigInt(size)), place);
  for (const [width, list] of Object.entries(hashes.scrambled)) {
    list.forEach((word, value) => check("scramble", scramble(BigInt(value), Number(width)), word));
  }
  for (const [number, bits, found] of hashes.permuted) check("permuted", permuted(BigInt(number), BigInt(bits)), found);
  for (const [number, key, bits, found] of hashes.tag) {
    check("tag", tagOf(BigInt(number), BigInt(key), BigInt(bits)), found);
  }
  return wrong;
}

/** The same for spellings of text, from the file that has attributes. */
export function spellingMismatches({ readSchema }, { hashes }) {
  const spelled = ([options, value]) => `${readSchema({ x: options }).get("x").read.spelling(value)}`;
  return hashes.spellings.filter((row) => spelled(row) !== row[2]);
}
