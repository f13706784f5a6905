// The calibrated rule: a declared score and its corrections (docs/protocol.md, "Models of sums").
import { ABSTAIN_FROM, LEVEL } from "./additive.js";
import { clip, dot, mean, range, sum } from "./algebra.js";
import { CELLS, RULE_SCALE, shapeOf } from "./designs.js";
import { directions } from "./histogram.js";
import { ratio } from "./mechanisms.js";
import { guessError } from "./moments.js";

const evenly = (value) => {
  const floor = Math.floor(value);
  const left = value - floor;
  return left > 0.5 || (left === 0.5 && floor % 2) ? floor + 1 : floor;
};

const MIDDLES = [-1.25, -0.4, 0.25, 1.1];
const [WAY, SLOPE, SLOPE_ERROR, INTERCEPT_ERROR, CURVED, SPIKE] = [0.98, 1, 0.6, 0.7, 0.5, 0.8];
const [CHANCES, SIZES] = [[0.1, 0.25, 0.5, 1], [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]];
const [RAREST, FAR, WEAK] = [0.02, 2.17 + 1.645, 0.5];
const sigmoid = (odds) => (odds >= 0 ? 1 / (1 + Math.exp(-odds)) : Math.exp(odds) / (1 + Math.exp(odds)));

// Tables, base rate, chance and belief of the sums of all rounds.
export function rule(study, sums) {
  const cards = study.features.map((one) => one.cardinality);
  const told = study.features.map((one) => (one.expects.length ? directions(one) : Array(one.cardinality).fill([0n, 1n])).map(([a, b]) => Number(a) / Number(b)));
  const heard = told.filter((own) => own.some((one) => one !== 0)).length;
  const parts = told.map((own) => own.map((one) => one / Math.sqrt(Math.max(1, heard))));
  const { mark, told: entries } = shapeOf(study.surveys[0]);
  const [first, ...rounds] = sums;
  const noise = ratio(...first.noise) / Number(mark) ** 2;
  const cells = first.values.slice(0, CELLS).map((one) => ratio(one, mark));
  const guess = study.learning.base_rate;
  const found = calibrated(cells, first.summed, noise, guess);
  const means = rounds.map(({ values, summed, noise: own }) => {
    const whole = Number(RULE_SCALE) * summed;
    return { means: values.slice(0, entries).map((one) => ratio(one, BigInt(whole))), noise: ratio(...own) / whole ** 2 };
  });
  const corrections = corrected(cards, found, first.summed, means);
  let start = 0;
  const odds = parts.map((own) => {
    const moved = corrections.slice(start, (start += own.length - 1));
    return own.map((one, at) => evenly(65536 * (found.slope * one + dot(moved, codeOf(own.length, at)))) / 65536);
  });
  const intercept = evenly(65536 * found.intercept) / 65536;
  const chance = Math.min(1, 2 * normalBelow(-Math.abs(found.z)));
  const against = normalBelow(found.z);
  const tables = study.features.map(({ name, cardinality }, i) => ({
    features: [name], cards: [cardinality], reports: first.summed, f1: 0, auc: 0.5, weight: 0, log_odds: odds[i], votes: odds[i].map((one) => Number(one > 0)), errors: [],
  }));
  const belief = { features: heard, heard: heardOf(parts, found.slope, odds), members: first.summed, against, contradicted: against <= LEVEL, enough: enough(noise, guess) };
  return { rate: clip(sigmoid(intercept), 1e-6, 1 - 1e-6), threshold: chance > ABSTAIN_FROM ? 0.5 : found.rate, chance, tables, belief };
}

// The standard normal's chance to lie below a point.
export function normalBelow(point) {
  if (Math.abs(point) > 8) return Number(point > 0);
  let [term, total] = [point, point];
  for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(total); odd += 2) total += term *= point ** 2 / odd;
  return 0.5 + (total * Math.exp(-(point ** 2) / 2)) / Math.sqrt(2 * Math.PI);
}

// The corner of a regular simplex that stands for a category.
function codeOf(card, category) {
  const stretch = Math.sqrt(card / (card - 1));
  return range(card - 1).map((i) => (stretch * (category < i + 1 ? 1 : category === i + 1 ? -(i + 1) : 0)) / Math.sqrt((i + 1) * (i + 2)));
}

export const spread = (numbers) => mean(numbers.map((one) => (one - mean(numbers)) ** 2));

function heardOf(parts, slope, odds) {
  if (slope < 0) return 1;
  const declared = sum(parts.map((own) => spread(own.map((one) => slope * one))));
  const corrections = sum(parts.map((own, i) => spread(own.map((one, at) => odds[i][at] - slope * one))));
  return corrections ? corrections / (declared + corrections) : 0;
}

function enough(noise, guess) {
  const squares = sum(MIDDLES.map((one) => (one - mean(MIDDLES)) ** 2));
  const told = ((guess * (1 - guess) * squares) / MIDDLES.length) * WEAK ** 2;
  const wide = noise * ((1 - guess) ** 2 + guess ** 2) * squares;
  return twoDigits((FAR * (FAR + Math.sqrt(FAR ** 2 + 4 * wide * WEAK ** 2))) / (2 * told));
}

// Rounded up to its two first digits.
export function twoDigits(people) {
  const step = 10 ** Math.max(0, Math.trunc(Math.log10(people)) - 1);
  return Math.ceil(people / step) * step;
}

// Shares of noisy counts, drawn towards being alike by the noise.
function drawnTogether(counts, noise) {
  const [middle, bins] = [mean(counts), counts.length];
  const squares = sum(counts.map((one) => (one - middle) ** 2));
  const part = middle > 0 && squares > 0 ? Math.max(0, 1 - ((bins - 1) * noise) / squares) : 0;
  const found = counts.map((one) => (part ? Math.max(RAREST, (1 + (part * (one - middle)) / middle) / bins) : 1 / bins));
  return found.map((one) => one / sum(found));
}

function calibrated(cells, people, noise, guess) {
  const [no, yes] = [0, 1].map((label) => cells.filter((_, i) => i % 2 === label));
  const told = (1 + (sum(yes) - sum(no)) / people) / 2;
  const doubt = (MIDDLES.length * noise) / (2 * people ** 2) + (guess * (1 - guess)) / people;
  const known = 1 / guessError(guess) ** 2;
  const rate = clip((guess * known + told / doubt) / (known + 1 / doubt), RAREST, 1 - RAREST);
  const wide = noise * ((1 - rate) ** 2 + rate ** 2);
  const shares = drawnTogether(yes.map((one, i) => one * rate + no[i] * (1 - rate)), wide);
  const moved = MIDDLES.map((one) => one - dot(shares, MIDDLES));
  const error = Math.sqrt(wide * dot(moved, moved) + people * rate * (1 - rate) * sum(shares.map((share, i) => share * moved[i] ** 2)));
  const z = sum(moved.map((one, i) => one * (yes[i] * (1 - rate) - no[i] * rate))) / error;
  const held = drawnTogether(yes.map((one, i) => one + no[i]), 2 * noise).map((share) => people * share);
  return { rate, z, ...line(yes.map((one, i) => one - no[i]), held, noise, rate) };
}

// Slope and intercept: the mean over a grid, given the likelier way.
function line(differences, held, noise, rate) {
  const centre = Math.log(rate / (1 - rate));
  const sizes = range(30).map((i) => 0.05 + 0.1 * i);
  const weights = sizes.map((size) => -((size - SLOPE) ** 2) / (2 * SLOPE_ERROR ** 2));
  const total = Math.log(sum(weights.map(Math.exp)));
  const grid = [[1, WAY], [-1, (1 - WAY) / 2]].flatMap(([way, prior]) => sizes.flatMap((size, i) => range(22).map((k) => {
    const step = -2.1 + 0.2 * k;
    const intercept = centre + INTERCEPT_ERROR * step;
    return { way, slope: way * size, intercept, score: Math.log(prior) + weights[i] - total - (step * step) / 2 + likelihood(differences, held, noise, way * size, intercept) };
  })));
  const top = Math.max(...grid.map((one) => one.score));
  grid.forEach((one) => (one.weight = Math.exp(one.score - top)));
  const of = (way) => grid.filter((one) => one.way === way);
  const whole = (points) => sum(points.map((one) => one.weight));
  const own = whole(of(1)) >= whole(of(-1)) ? of(1) : of(-1);
  return { slope: sum(own.map((one) => one.weight * one.slope)) / whole(own), intercept: sum(own.map((one) => one.weight * one.intercept)) / whole(own) };
}

function likelihood(differences, held, noise, slope, intercept) {
  return -sum(differences.map((told, i) => {
    const chance = sigmoid(intercept + slope * MIDDLES[i]);
    const variance = 2 * noise + 4 * held[i] * chance * (1 - chance);
    return (told - held[i] * (2 * chance - 1)) ** 2 / (2 * variance) + Math.log(variance) / 2;
  }));
}

function corrected(cards, { rate }, people, rounds) {
  const spent = rate * (1 - rate);
  const each = (of) => cards.flatMap((card) => Array(card - 1).fill(of(card)));
  const falls = each((card) => (CURVED * (0.5 * spent + 0.075)) / (card - 1));
  let [pulled, weights] = [falls.map(() => 0), falls.map(() => 0)];
  rounds.forEach(({ means, noise }, i) => {
    pulled = pulled.map((one, k) => one + means[k] + falls[k] * weights[k]);
    const chance = each((card) => noise / (i + 1) + (0.6 * spent) / (people * (card - 1)));
    weights = shrunk(cards, pulled.map((one) => one / (i + 1)), falls, chance);
  });
  return weights;
}

// Posterior means: of each feature all corrections are 0, or normal of size tau, averaged over both.
function shrunk(cards, pulled, falls, noise) {
  let start = 0;
  const places = cards.map((card) => range(card - 1).map(() => start++));
  const prior = Math.log((1 - SPIKE) / SPIKE / CHANCES.length / SIZES.length);
  const found = [{ score: 0, means: pulled.map(() => 0) }];
  for (const size of SIZES) {
    const wide = falls.map((fall, k) => fall * fall * size ** 2 + noise[k]);
    const odds = places.map((place) => sum(place.map((k) => (pulled[k] ** 2 / noise[k] - pulled[k] ** 2 / wide[k] - Math.log(wide[k] / noise[k])) / 2)));
    const kept = pulled.map((one, k) => (falls[k] * size ** 2 * one) / wide[k]);
    for (const chance of CHANCES) {
      const each = odds.map((one) => mixed(chance, one));
      found.push({ score: prior + sum(each.map(([score]) => score)), means: places.flatMap((place, f) => place.map((k) => each[f][1] * kept[k])) });
    }
  }
  const top = Math.max(...found.map((one) => one.score));
  const weights = found.map((one) => Math.exp(one.score - top));
  return pulled.map((_, k) => sum(found.map((one, i) => weights[i] * one.means[k])) / sum(weights));
}

function mixed(chance, odds) {
  if (chance === 1) return [odds, 1];
  const top = Math.max(0, odds);
  const [apart, own] = [(1 - chance) * Math.exp(-top), chance * Math.exp(odds - top)];
  return [top + Math.log(apart + own), own / (apart + own)];
}
