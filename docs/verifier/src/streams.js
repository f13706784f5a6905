// Bytes and numbers that follow from published ones, by SHAKE-256.
import { shake256 } from "@noble/hashes/sha3.js";
import { concat, encode, number, spelled } from "./bytes.js";

export const shaken = (grounds, size) => shake256(encode(grounds), { dkLen: size });

// The bytes of a list and a counter.
export const derived = (grounds, size, call = 0) => shake256(concat(encode(grounds), spelled(call, 8)), { dkLen: size });

const CALL = 4096;

// Uniform numbers: each call's bytes are words of 64 bits, little-endian, of which the last is spent first.
export class Coins {
  words = [];
  calls = 0;

  constructor(grounds) {
    this.grounds = grounds;
  }

  // A number from 0 to `bound` - 1, which is below 2^32.
  below(bound) {
    const last = (1n << 64n) - ((1n << 64n) % BigInt(bound));
    for (;;) {
      const word = this.word();
      if (word < last) return Number(word % BigInt(bound));
    }
  }

  word() {
    if (!this.words.length) {
      const view = new DataView(derived(this.grounds, CALL, this.calls++).buffer);
      for (let at = 0; at < CALL; at += 8) this.words.push(view.getBigUint64(at, true));
    }
    return this.words.pop();
  }
}

// Big-endian numbers of so many bytes each.
export function numbersIn(data, size) {
  return Array.from({ length: Math.ceil(data.length / size) }, (_, i) => number(data.subarray(i * size, (i + 1) * size)));
}
