// Averaging in groups that members draw together (docs/protocol.md, "Averaging in groups").
import { INT, compare, demand, encode, fields, same, sha256, unhex, utf8 } from "./bytes.js";
import { shapeOf } from "./designs.js";
import { ratio } from "./mechanisms.js";
import { ensembleOf } from "./models.js";
import { isSealingKey } from "./pages.js";
import { derived, numbersIn } from "./streams.js";
import { linearResult } from "./summed.js";

const [KEYS, OPENED, SHARES, TOLD] = [0, 0, 1, 2];
const [KEM, VALUE, WIDTH, RARE] = [1216, 32, 8, 14];
const LABEL = utf8("anonml/1/groups");
const surveyOf = (aggregation, step) => 1 + 3 * aggregation + step;

export const groups = {
  seats: [],
  // True where no model can come any more: none is there, and too few told keys or values, or all rounds are over.
  ends(study, round, { pages }) {
    const plan = planOf(study);
    if (round === KEYS) return pages.get(KEYS).texts.get(KEYS).size < plan.group;
    const [aggregation, step] = [Math.floor((round - 1) / 3), (round - 1) % 3];
    const over = step === OPENED ? !drawn(study, plan, pages, aggregation).length : round === study.surveys.length - 1;
    return over && !modelsOf(study, plan, pages).length;
  },
  result(study, { pages }) {
    const models = modelsOf(study, planOf(study), pages);
    demand(models.length, "groups: no group has a model");
    return ensembleOf(study, study.features.map((one) => one.name), models);
  },
};

function planOf(study) {
  const [aggregations, group, receivers, up, down] = fields(study.part ?? new Uint8Array(0), [INT, INT, INT, INT, INT], "groups");
  demand(aggregations >= 1n && group >= 2n && receivers >= 1n && receivers <= group && up > 0n && down > 0n, "groups: expected groups with receivers, and noise");
  const survey = study.surveys[surveyOf(0, TOLD)];
  demand(study.surveys.length === 1 + 3 * Number(aggregations) && survey.kind === "weights", "manifest: its surveys are not those of groups");
  const shape = shapeOf(survey);
  demand(survey.size === WIDTH * shape.length, "manifest: its surveys are not those of groups");
  return { aggregations: Number(aggregations), group: Number(group), receivers: Number(receivers), noise: [up, down], survey, shape };
}

// The groups of an aggregation, each a list of tags with the receivers first.
function drawn(study, { group }, pages, aggregation) {
  const number = surveyOf(aggregation, OPENED);
  if (!pages.has(KEYS) || !pages.has(number)) return [];
  const [keys, at] = [pages.get(KEYS).texts.get(KEYS), KEM + VALUE * aggregation];
  const fits = ([tag, value]) => {
    const told = keys.get(tag);
    const expected = sha256(encode([LABEL, "commitment", study.id, unhex(tag), aggregation, value]));
    return told && same(told.subarray(at, at + VALUE), expected) && isSealingKey(told.subarray(0, KEM));
  };
  const pool = [...pages.get(number).texts.get(number)].filter(fits);
  const seed = derived([LABEL, "seed", study.id, aggregation, pool.map(([, value]) => value)], VALUE);
  const placed = pool.map(([tag]) => ({ tag, place: derived([LABEL, "order", seed, unhex(tag)], VALUE) }));
  const order = placed.sort((a, b) => compare(a.place, b.place)).map(({ tag }) => tag);
  const many = Math.floor(order.length / group);
  return Array.from({ length: many }, (_, i) => order.slice(i * group, i === many - 1 ? order.length : (i + 1) * group));
}

// The models of all groups that have one, in the order of aggregation and group.
function modelsOf(study, plan, pages) {
  const found = [];
  for (let aggregation = 0; aggregation < plan.aggregations; aggregation++) {
    drawn(study, plan, pages, aggregation).forEach((members, i) => {
      const made = modelOf(study, plan, pages, aggregation, members);
      if (made) found.push({ aggregation: aggregation + 1, group: i + 1, ...made });
    });
  }
  return found;
}

function modelOf(study, plan, pages, aggregation, members) {
  const textsOf = (step) => pages.get(surveyOf(aggregation, step))?.texts.get(surveyOf(aggregation, step)) ?? new Map();
  const came = members.filter((tag) => textsOf(SHARES).get(tag)?.[0] === 1).length;
  const told = members.slice(0, plan.receivers).map((tag) => textsOf(TOLD).get(tag));
  if (2 * came < members.length || !came || !told.every((text) => text?.some(Boolean))) return null;
  const values = told.map((text) => numbersIn(text, WIDTH)).reduce((all, own) => all.map((one, i) => one + own[i])).map((one) => BigInt.asIntN(64, one));
  if (Math.hypot(...values.map(Number)) > longest(plan, came)) return null;
  const noise = [plan.noise[0] * BigInt(plan.receivers), plan.noise[1]];
  const { weights, intercept } = linearResult(study, plan.survey, { values, summed: came, noise });
  return { members: came, weights, intercept };
}

// The length that a sum of so many members' weights has at most, with all noise.
function longest({ shape: { length, proven }, receivers, noise }, many) {
  const spread = length + 2 * Math.sqrt(length * RARE) + 2 * RARE;
  return many * Math.sqrt(Number(proven)) + Math.sqrt(ratio(noise[0] * BigInt(receivers), noise[1]) * spread);
}
