// Bytes, and the one spelling of plain values: deterministic CBOR (docs/protocol.md, "Encoding").
//
// A decoded integer is a BigInt and a float a Number, so that 1 and 1.0 stay apart. Maps are Map, lists Array.
import { sha256 } from "@noble/hashes/sha2.js";

export { sha256 };

export class Fault extends Error {}

export function demand(holds, why) {
  if (!holds) throw new Fault(why);
}

export const utf8 = (text) => new TextEncoder().encode(text);

export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function compare(a, b) {
  const both = Math.min(a.length, b.length);
  for (let i = 0; i < both; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

export const same = (a, b) => a.length === b.length && compare(a, b) === 0;
export const isBytes = (value) => value instanceof Uint8Array;
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export function unhex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

export function number(bytes) {
  return bytes.length ? BigInt("0x" + hex(bytes)) : 0n;
}

export function spelled(value, size) {
  return unhex(BigInt(value).toString(16).padStart(2 * size, "0"));
}

export const strictlySorted = (items) => items.every((item, i) => i === 0 || compare(items[i - 1], item) < 0);

// Writing: what is hashed and compared. Whole numbers may be Numbers here; nothing of ours is a float.

function head(major, argument) {
  const value = BigInt(argument);
  if (value < 24n) return Uint8Array.of((major << 5) | Number(value));
  for (const [more, size] of [[24, 1], [25, 2], [26, 4], [27, 8]]) {
    if (value < 1n << BigInt(8 * size)) return concat(Uint8Array.of((major << 5) | more), spelled(value, size));
  }
  throw new Error("a length beyond 64 bits");
}

export function encode(value) {
  if (isBytes(value)) return concat(head(2, value.length), value);
  if (typeof value === "string") return concat(head(3, utf8(value).length), utf8(value));
  if (Array.isArray(value)) return concat(head(4, value.length), ...value.map(encode));
  if (value instanceof Map) return concat(head(5, value.size), ...[...value].flat().map(encode));
  const whole = BigInt(value);
  const size = whole < 0n ? -1n - whole : whole;
  if (size >> 64n) return concat(Uint8Array.of(whole < 0n ? 0xc3 : 0xc2), encode(spelled(size, (size.toString(16).length + 1) >> 1)));
  return head(whole < 0n ? 1 : 0, size);
}

export const labelled = (label, ...parts) => sha256(encode([utf8(label), ...parts]));

// Reading

const DEEPEST = 16;

export function decode(data) {
  const reader = new Reader(data);
  const value = reader.value(DEEPEST);
  demand(reader.at === data.length, "something follows the value");
  demand(reader.lists <= Math.floor(data.length / 4) + 64, "hardly anything but lists");
  return value;
}

class Reader {
  constructor(data) {
    this.data = data;
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
    this.lists = 0;
  }

  take(size) {
    demand(this.at + size <= this.data.length, "cut short");
    this.at += size;
    return this.data.subarray(this.at - size, this.at);
  }

  argument(more) {
    if (more < 24) return BigInt(more);
    demand(more <= 27, "an indefinite or reserved length");
    const size = 1 << (more - 24);
    const value = number(this.take(size));
    demand(value >= (size === 1 ? 24n : 1n << BigInt(4 * size)), "a number is not in its shortest spelling");
    return value;
  }

  length(more) {
    const value = this.argument(more);
    demand(value <= BigInt(this.data.length), "cut short");
    return Number(value);
  }

  value(deep) {
    const first = this.take(1)[0];
    const [major, more] = [first >> 5, first & 31];
    if (major === 0) return this.argument(more);
    if (major === 1) return -1n - this.argument(more);
    if (major === 2) return this.take(this.length(more));
    if (major === 3) return this.text(this.length(more));
    if (major === 6) return this.big(first);
    if (major === 7) return this.simple(more);
    this.lists += 1;
    demand(deep > 0, "nested too deeply");
    return major === 4 ? this.list(this.length(more), deep) : this.map(this.length(more), deep);
  }

  text(size) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.take(size));
    } catch (error) {
      throw error instanceof Fault ? error : new Fault("a text is no UTF-8");
    }
  }

  list(size, deep) {
    const items = [];
    for (let i = 0; i < size; i++) items.push(this.value(deep - 1));
    return items;
  }

  // Keys are sorted by the length of their spelling, then by its bytes. So none is there twice.
  map(size, deep) {
    const found = new Map();
    let last = new Uint8Array(0);
    for (let i = 0; i < size; i++) {
      const start = this.at;
      const key = this.value(0);
      const own = this.data.subarray(start, this.at);
      demand(typeof key === "bigint" || typeof key === "string" || isBytes(key), "a key of another type");
      demand(own.length > last.length || (own.length === last.length && compare(last, own) < 0), "keys are out of order");
      found.set(key, this.value(deep - 1));
      last = own;
    }
    return found;
  }

  big(first) {
    demand(first === 0xc2 || first === 0xc3, "a tag");
    const next = this.take(1)[0];
    demand(next >> 5 === 2, "a tag of something else than bytes");
    const bytes = this.take(this.length(next & 31));
    demand(bytes.length > 8 && bytes[0] !== 0, "a large integer is not in its shortest spelling");
    return first === 0xc2 ? number(bytes) : -1n - number(bytes);
  }

  simple(more) {
    if (more === 20) return false;
    if (more === 21) return true;
    if (more === 22) return null;
    demand(more >= 25 && more <= 27, "a value that is not plain");
    const start = this.at;
    this.take(1 << (more - 24));
    const value = more === 25 ? half(this.view.getUint16(start)) : more === 26 ? this.view.getFloat32(start) : this.view.getFloat64(start);
    demand(Number.isFinite(value), "a float that is not finite");
    demand(more === 25 || !isHalf(value), "a float is not in its shortest spelling");
    demand(more !== 27 || Math.fround(value) !== value, "a float is not in its shortest spelling");
    return value;
  }
}

function half(bits) {
  const [sign, exponent, fraction] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

function isHalf(value) {
  const size = Math.abs(value);
  if (size > 65504) return false;
  const exponent = Math.max(size ? Math.floor(Math.log2(size)) : 0, -14);
  return Number.isInteger(size / 2 ** (exponent - 10)) && size / 2 ** (exponent - 10) < 2048;
}

// Shapes

export const INT = "bigint";
export const FLOAT = "number";
export const TEXT = "string";
export const BYTES = "bytes";
export const LIST = "list";

export function typeOf(value) {
  return isBytes(value) ? BYTES : Array.isArray(value) ? LIST : value instanceof Map ? "map" : value === null ? "null" : typeof value;
}

export function fields(data, kinds, what) {
  const items = isBytes(data) ? decode(data) : data;
  const fits = Array.isArray(items) && items.length === kinds.length && items.every((item, i) => typeOf(item) === kinds[i]);
  demand(fits, `${what}: expected ${kinds.length} fields of the documented kinds`);
  return items;
}
