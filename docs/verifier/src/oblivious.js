// Averages whose noise is that of the party with the fewest records (docs/protocol.md, "Oblivious averaging").
import { demand, number } from "./bytes.js";
import { isPoint } from "./curve.js";
import { shapeOf } from "./designs.js";
import { linearOf } from "./models.js";
import { numbersIn } from "./streams.js";
import { linearResult } from "./summed.js";

const [KEYS, AGREED, SHARES, POSTED, PERMUTED, COMPARED, NOISE, OPENING] = [0, 1, 2, 3, 4, 5, 6, 7];
const [ENTRY, POINT] = [64, 48];
// Of each round after the first the survey whose texts are those of all parties.
const ASKED = [KEYS, AGREED, SHARES, PERMUTED, COMPARED, NOISE, OPENING];

export const oblivious = {
  seats: [1, 3, 4, 6],
  longestSeat,
  ends(study, round, { pages, seats }) {
    const silent = seats.get(round);
    return (silent?.length === 1 && silent[0] === 0) || fails(study, round, pages);
  },
  result(study, { pages, seats }) {
    const frame = frameOf(study);
    const [texts, key, told] = [textsOf(pages, OPENING), seats.get(1), seats.get(6)];
    demand(texts && key && told?.length === frame.vector, "oblivious: a party, or the seat, told no sum");
    const modulus = number(key.subarray(0, frame.modulus));
    demand(modulus > 0n, "oblivious: the seat told no modulus");
    const parts = [told, ...texts.map((text) => text.subarray(0, frame.vector))].map((text) => numbersIn(text, frame.modulus));
    const sums = parts[0].map((_, i) => parts.reduce((all, part) => all + part[i], 0n) % modulus);
    const values = sums.flatMap((plain) => entriesOf(frame, plain, modulus)).slice(0, frame.entries);
    return linearOf(study, linearResult(study, study.surveys[OPENING], { values, summed: texts.length }));
  },
};

// The most bytes that the seat says after a round, to so many parties as the cohort may have.
function longestSeat(study, round) {
  const { modulus, vector, question } = frameOf(study);
  const many = study.cohort.maximum;
  return { 1: modulus + POINT, 3: 2 * modulus * many + pairsOf(many).length * question, 4: 2 * modulus * many, 6: vector }[round];
}

// Bytes of a modulus and of a vector's plaintexts, its entries, and how many stand in a plaintext.
function frameOf(study) {
  const survey = study.surveys[OPENING];
  demand(study.surveys.length === 8 && survey.kind === "weights", "manifest: its surveys are not those of oblivious averaging");
  const { length, many } = shapeOf(survey);
  const modulus = study.surveys[AGREED].size;
  const each = Math.floor((8 * modulus - 2) / ENTRY);
  demand(each >= 1, "manifest: its surveys are not those of oblivious averaging");
  const vector = Math.ceil(length / each) * modulus;
  const question = (many.most.toString(2).length + 1) * 2 * POINT;
  return { modulus, entries: length, each, vector, question };
}

function entriesOf({ each }, plain, modulus) {
  let left = plain > (modulus - 1n) / 2n ? plain - modulus : plain;
  return Array.from({ length: each }, () => {
    const entry = BigInt.asIntN(ENTRY, left);
    left = (left - entry) >> BigInt(ENTRY);
    return entry;
  });
}

const partiesOf = (pages) => [...pages.get(0).texts.get(KEYS).keys()];

// The texts of a survey in the order of parties, if exactly these wrote; else null.
function textsOf(pages, survey) {
  const said = pages.get(survey <= SHARES ? survey : survey - 1)?.texts.get(survey) ?? new Map();
  return String([...said.keys()]) === String(partiesOf(pages)) ? [...said.values()] : null;
}

// True where another number than all parties wrote, or a text says nothing.
function fails(study, round, pages) {
  if (round === 0) return partiesOf(pages).length < study.cohort.minimum;
  const [frame, texts] = [frameOf(study), textsOf(pages, ASKED[round])];
  if (!texts) return true;
  const key = number(textsOf(pages, AGREED)?.[0] ?? new Uint8Array(0));
  if (round === 1) return key.toString(2).length !== 8 * frame.modulus || key % 2n === 0n;
  if (round === 2) return !texts.every(([told]) => told === 1) || pages.get(2).texts.get(POSTED).size < texts.length;
  if (round === 3) return !texts.every((text) => isCipher(number(text), key));
  if (round === 4) return !pairsOf(texts.length).every((at) => isReply(texts[at % texts.length].subarray(Math.floor(at / texts.length) * frame.question).subarray(0, frame.question)));
  return !texts.every((text) => text.subarray(0, frame.vector).some(Boolean));
}

const pairsOf = (many) => Array.from({ length: (many * (many - 1)) / 2 }, (_, at) => at);

function isCipher(value, key) {
  let [a, b] = [value, key];
  while (b) [a, b] = [b, a % b];
  return value > 0n && value < key * key && a === 1n;
}

const isReply = (text) => Array.from({ length: Math.ceil(text.length / POINT) }, (_, i) => text.subarray(i * POINT, (i + 1) * POINT)).every(isPoint);
