// The manifest's fields, as a table, and what values they take (docs/protocol.md, "The fields of a manifest").
import { sha3_256 } from "@noble/hashes/sha3.js";
import { BYTES, FLOAT, INT, TEXT, concat, demand, same, typeOf, utf8 } from "./bytes.js";

const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
const BLANK = /^[\t\n\v\f\r \x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*$/;
const LARGEST = 2 ** 53;
const lengthOf = (text) => [...text].length;

export const int = (least, end) => (value, at) => {
  demand(typeOf(value) === INT, `${at}: expected a whole number`);
  demand(value >= BigInt(least) && value < BigInt(end), `${at}: out of range`);
  return value;
};
export const small = (least, end) => (value, at) => Number(int(least, end)(value, at));
export const float = (value, at) => {
  demand(typeOf(value) === FLOAT, `${at}: expected a float`);
  demand(Math.abs(value) <= LARGEST, `${at}: expected numbers from -2^53 to 2^53`);
  return value;
};
export const bytes = (size) => (value, at) => {
  demand(typeOf(value) === BYTES, `${at}: expected bytes`);
  demand(size === undefined || value.length === size, `${at}: expected ${size} bytes`);
  return value;
};
export const plain = (limit, least = 0) => (value, at) => {
  demand(typeOf(value) === TEXT, `${at}: expected text`);
  demand(!UNSEEN.test(value), `${at}: expected plain text`);
  demand(lengthOf(value) <= limit && (!least || !BLANK.test(value)), `${at}: expected text of ${least} to ${limit} characters`);
  return value;
};
export const line = (value, at) => {
  plain(400)(value, at);
  demand(!/[\n\t]/.test(value), `${at}: expected one line`);
  return value;
};
export const matching = (pattern) => (value, at) => {
  demand(typeOf(value) === TEXT && pattern.test(value), `${at}: expected a name`);
  return value;
};
export const oneOf = (...choices) => (value, at) => {
  demand(choices.includes(value), `${at}: expected one of ${choices.join(", ")}`);
  return value;
};
export const list = (item, most = Infinity) => (value, at) => {
  demand(Array.isArray(value) && value.length <= most, `${at}: expected a list`);
  return value.map((one, i) => item(one, `${at}[${i}]`));
};
export const text = (value, at) => {
  demand(typeOf(value) === TEXT, `${at}: expected text`);
  return value;
};

// A map of exactly these fields; those of `optional` may be left out.
export const table = (required, optional = {}, check = () => {}) => (value, at) => {
  demand(value instanceof Map, `${at}: expected a table`);
  const kinds = { ...required, ...optional };
  for (const key of value.keys()) demand(typeof key === "string" && Object.hasOwn(kinds, key), `${at}.${String(key)}: an unknown field`);
  for (const key of Object.keys(required)) demand(value.has(key), `${at}.${key}: required, but missing`);
  const made = {};
  for (const [key, kind] of Object.entries(kinds)) if (value.has(key)) made[key] = kind(value.get(key), `${at}.${key}`);
  check(made, at);
  return made;
};

export const different = (items) => new Set(items).size === items.length;

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

function onion(address) {
  const found = /^([a-z2-7]{56})\.onion:80$/.exec(address);
  if (!found) return false;
  let bits = "";
  for (const letter of found[1]) bits += ALPHABET.indexOf(letter).toString(2).padStart(5, "0");
  const decoded = Uint8Array.from(bits.match(/.{8}/g), (byte) => parseInt(byte, 2));
  const [key, checksum, version] = [decoded.subarray(0, 32), decoded.subarray(32, 34), decoded.subarray(34)];
  const expected = sha3_256(concat(utf8(".onion checksum"), key, Uint8Array.of(3))).subarray(0, 2);
  return version[0] === 3 && same(checksum, expected);
}

export const addresses = (value, at) => {
  const named = text(value, at).split(" ");
  demand(named.length <= 8 && different(named) && named.every(onion), `${at}: expected at most 8 different onion addresses at port 80`);
  return value;
};

// The spelling of a float by which two values of a label are compared: shortest digits, an exponent from 1e16 on and below 1e-4.
export function floatText(value) {
  if (Object.is(value, -0)) return "-0.0";
  const [digits, power] = value.toExponential().split("e");
  const exponent = Number(power);
  if (value !== 0 && (exponent < -4 || exponent >= 16)) {
    return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  const shown = String(value).includes("e") ? value.toFixed(Math.max(0, -exponent + digits.replace(/[-.]/g, "").length - 1)) : String(value);
  return shown.includes(".") ? shown : `${shown}.0`;
}
