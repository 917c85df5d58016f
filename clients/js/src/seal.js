// Sealed reports: HPKE in base mode (RFC 9180) of DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.

import { fromHex, joined, toBytes, utf8 } from "./bytes.js";
import { need, SottovoceError } from "./errors.js";
import { largest } from "./families.js";

const X25519 = { name: "X25519" };
const AES = "AES-GCM";
const BASE_POINT = toBytes(9n, 32);
const PKCS8 = fromHex("", "302e020100300506032b656e04220420"); // before a private key
const VERSION = utf8("HPKE-v1");
const KEM_SUITE = joined(utf8("KEM"), [0, 32]);
const HPKE_SUITE = joined(utf8("HPKE"), [0, 32, 0, 1, 0, 1]);
const ZEROS = new Uint8Array(32);

const { subtle } = globalThis.crypto ?? {};

const publicKey = (raw) => subtle.importKey("raw", raw, X25519, false, []);

/** Whether this browser can: WebCrypto has X25519 since 2025. */
export const canSeal = () => Promise.resolve().then(() => publicKey(BASE_POINT)).then(() => true, () => false);

async function exchange(own, other) {
  try {
    const name = { ...X25519, public: await publicKey(other) };
    return new Uint8Array(await subtle.deriveBits(name, own, 256));
  } catch {
    return need(false, "plan: a hop's key is no public key of X25519"); // one of low order
  }
}

async function hmac(key, ...parts) {
  const made = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", made, joined(...parts)));
}

const extract = (suite, salt, label, secret) => hmac(salt, VERSION, suite, utf8(label), secret);

const expand = async (suite, secret, label, info, length) =>
  (await hmac(secret, [0, length], VERSION, suite, utf8(label), info, [1])).slice(0, length);

/** Encapsulated key and ciphertext; `ephemeral`: a private key, a new one each time. */
export async function hpkeSeal(plain, recipient, info, ephemeral, aad = new Uint8Array(0)) {
  const own = await subtle.importKey("pkcs8", joined(PKCS8, ephemeral), X25519, false, ["deriveBits"]);
  const encapsulated = await exchange(own, BASE_POINT);
  // shared_secret = ExtractAndExpand(dh, enc || pkRm)
  const agreed = await extract(KEM_SUITE, ZEROS, "eae_prk", await exchange(own, recipient));
  const shared = await expand(KEM_SUITE, agreed, "shared_secret", joined(encapsulated, recipient), 32);
  // secret = LabeledExtract(shared_secret, "secret", psk), psk empty
  const secret = await extract(HPKE_SUITE, shared, "secret", []);
  const named = [await extract(HPKE_SUITE, ZEROS, "psk_id_hash", []), await extract(HPKE_SUITE, ZEROS, "info_hash", info)];
  const context = joined([0], ...named);
  const key = await subtle.importKey("raw", await expand(HPKE_SUITE, secret, "key", context, 16), AES, false, ["encrypt"]);
  const iv = await expand(HPKE_SUITE, secret, "base_nonce", context, 12);
  return joined(encapsulated, new Uint8Array(await subtle.encrypt({ name: AES, iv, additionalData: aad }, key, plain)));
}

/** The onion of a report: each hop opens one layer, and only the last sees what is inside. */
export async function seal({ id, cohorts, shuffling: { hops } }, cohort, payload, entropy) {
  const padding = new Uint8Array(largest(cohorts, "bytes") - payload.length);
  let onion = joined(entropy.bytes(16), toBytes(BigInt(cohort), 4), payload, padding);
  for (let hop = hops.length; hop--; ) {
    const info = joined(utf8("sottovoce onion 1"), fromHex("", id), [hop]);
    onion = await hpkeSeal(onion, fromHex("", hops[hop]), info, entropy.bytes(32));
  }
  return onion;
}

export const needSealing = async () =>
  need(await canSeal(), "this browser cannot seal reports: its WebCrypto has no X25519", SottovoceError);
