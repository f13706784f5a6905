// Tables of a histogram: one by one, or all by the additive model (docs/protocol.md, "Tables of a histogram").
import { ABSTAIN_FROM, CELL_TAUS, chanceOf, fit, measurements, whitened } from "./additive.js";
import { solve, sum, zeros } from "./algebra.js";
import { hasRule } from "./histogram.js";
import { localRule } from "./local.js";
import { SCALE, joint, nearestShares, ratio, unbiased } from "./mechanisms.js";
import { bitOf, coordinatesOf, gather } from "./moments.js";

const EXTREME = 0.02;
const MOST_CELLS = 400; // of a survey: beyond, the linear equations take minutes here
const MOST_MERGED = 600;
const clip = (value, low, high) => Math.min(Math.max(value, low), high);
const unit = (value) => clip(value, 0, 1);
const product = (numbers) => numbers.reduce((all, one) => all * one, 1);

// Unbiased shares of a survey's cells, and their covariance.
function reconstruct(survey, { n, counts }) {
  const { m } = survey;
  const heading = { features: survey.features, n };
  if (n === 0) return { ...heading, shares: Array(m).fill(1 / m), covariance: null };
  const { p, q, name } = survey.built;
  const [gap, floor] = [ratio(p - q, SCALE), ratio(q, SCALE)];
  const shares = unbiased(survey.built, counts, n).map((one) => one / n);
  const rates = counts.map((count) => clip(count / n, floor / 2, 1 - floor / 2));
  const scale = n * gap * gap;
  const cell = name === "krr" ? (i, j) => -rates[i] * rates[j] / scale : beside(survey.built, shares, gap, floor, scale);
  const covariance = rates.map((rate, i) => rates.map((_, j) => (i === j ? (rate * (1 - rate)) / scale : cell(i, j))));
  return { ...heading, shares, covariance };
}

function beside(built, shares, gap, floor, scale) {
  const plausible = nearestShares(shares);
  const [first, second] = joint(built);
  const supported = plausible.map((share) => floor + gap * share);
  return (i, j) => (second + (first - second) * (plausible[i] + plausible[j]) - supported[i] * supported[j]) / scale;
}

function pool(histograms) {
  const known = histograms.filter((one) => one.n > 0);
  if (!known.length) return histograms[0];
  const precision = known.map(({ covariance }) => covariance.length / sum(covariance.map((row, i) => row[i])));
  const weights = precision.map((one) => one / sum(precision));
  const over = (of) => sum(known.map((one, k) => of(one, weights[k])));
  const shares = known[0].shares.map((_, i) => over((one, weight) => weight * one.shares[i]));
  const covariance = shares.map((_, i) => shares.map((__, j) => over((one, weight) => weight * weight * one.covariance[i][j])));
  return { features: known[0].features, n: sum(known.map((one) => one.n)), shares, covariance };
}

function baseRate(histograms) {
  const found = histograms.filter((one) => one.n > 0).map(({ shares, covariance }) => {
    const odd = shares.map((_, i) => i).filter((i) => i % 2);
    const variance = sum(odd.map((i) => sum(odd.map((j) => covariance[i][j]))));
    return [sum(odd.map((i) => shares[i])), 1 / Math.max(variance, 1e-12)];
  });
  if (!found.length) return 0.5;
  return clip(sum(found.map(([share, weight]) => share * weight)) / sum(found.map(([, weight]) => weight)), 0.01, 0.99);
}

const fold = (covariance, [zero, one]) => (a, b) => {
  const [up, low] = [covariance[2 * a], covariance[2 * a + 1]];
  return zero * (zero * up[2 * b] + one * up[2 * b + 1]) + one * (zero * low[2 * b] + one * low[2 * b + 1]);
};

// The posterior mean of each cell's contrast under a normal prior of variance 1 and the known noise.
function soft({ n, shares, covariance }, rate) {
  const cells = shares.length / 2;
  if (n === 0) return Array(cells).fill(0);
  const each = Array.from({ length: cells }, (_, i) => i);
  const contrast = each.map((i) => (1 - rate) * shares[2 * i + 1] - rate * shares[2 * i]);
  const noise = fold(covariance, [-rate, 1 - rate]);
  const gain = cellShares(each, shares, fold(covariance, [1, 1])).map((share) => rate * (1 - rate) * share);
  const solved = solve(each.map((i) => each.map((j) => noise(i, j) + (i === j ? gain[i] * gain[i] : 0))), contrast);
  const low = Math.min(EXTREME, rate / 2, (1 - rate) / 2);
  return each.map((i) => {
    const believed = clip(rate + rate * (1 - rate) * gain[i] * solved[i], low, 1 - low);
    return Math.log(believed / (1 - believed)) - Math.log(rate / (1 - rate));
  });
}

function cellShares(each, shares, variance) {
  const cells = each.length;
  const own = each.map((i) => shares[2 * i] + shares[2 * i + 1]);
  const noise = each.map((i) => Math.max(variance(i, i), 0));
  const spread = sum(own.map((share) => (share - 1 / cells) ** 2));
  const kept = spread > 0 ? Math.max(0, 1 - sum(noise) / spread) : 0;
  const smooth = own.map((share, i) => Math.max(1 / cells + kept * (share - 1 / cells), Math.sqrt(noise[i]) / 2, 1e-3));
  return smooth.map((share) => share / sum(smooth));
}

function score(logOdds, scoring, rate) {
  if (!scoring || scoring.n === 0) return { f1: (2 * rate) / (1 + 2 * rate), auc: 0.5 };
  const cells = logOdds.map((_, i) => [scoring.shares[2 * i], scoring.shares[2 * i + 1]]);
  const called = cells.filter((_, i) => logOdds[i] > 0);
  const hits = sum(called.map((cell) => cell[1]));
  const f1 = unit((2 * hits) / (Math.max(sum(called.flat()), 0) + rate));
  let wins = 0;
  cells.forEach((a, i) => cells.forEach((b, j) => (wins += a[1] * b[0] * Math.sign(logOdds[i] - logOdds[j]))));
  return { f1, auc: unit(0.5 + wins / (2 * rate * (1 - rate))) };
}

// The histogram of one of its features with the label.
function marginal({ features, n, shares, covariance }, name, cards) {
  const at = features.indexOf(name);
  const below = 2 * product(cards.slice(at + 1));
  const target = shares.map((_, cell) => 2 * (Math.floor(cell / below) % cards[at]) + (cell % 2));
  const folded = { features: [name], n, shares: Array(2 * cards[at]).fill(0), covariance: zeros(2 * cards[at], 2 * cards[at]) };
  target.forEach((i, cell) => {
    folded.shares[i] += shares[cell];
    target.forEach((j, other) => (folded.covariance[i][j] += covariance[cell][other]));
  });
  return folded;
}

const told = ({ survey, features, cards, built }, tallies, part) => ({ survey, features, cards, built, ...tallies.get(survey)[part] });

// Base rate, tables and chance from what was counted: `tallies` by survey, [train, score], each { n, counts }; of one-bit
// surveys all reports train. `guessed`: shares that are declared, or known from binning. `published`: the log-odds of its tables, where the classifier is one
// that is not repeated here.
export function learn(study, tallies, guessed, published) {
  if (hasRule(study)) return localRule(study, tallies, guessed);
  const found = study.learning.classifier === "additive" ? jointly(study, tallies, guessed) : apart(study, tallies, published);
  if (found.chance <= ABSTAIN_FROM) return found;
  const silent = ({ log_odds: odds }) => ({ log_odds: odds.map(() => 0), votes: odds.map(() => 0), weight: 0 });
  const tables = study.learning.classifier === "additive" ? found.tables : found.tables.map((one) => ({ ...one, ...silent(one) }));
  return { ...found, threshold: 0.5, tables };
}

function jointly(study, tallies, guessed) {
  const asked = study.surveys.filter((survey) => survey.kind === "histogram");
  const bits = study.surveys.filter((survey) => survey.kind === "bit").map((survey) => bitOf(survey, tallies.get(survey.survey)[0]));
  const train = asked.map((survey) => told(survey, tallies, 0));
  const scoring = asked.map((survey) => told(survey, tallies, 1));
  const moments = gather(coordinatesOf(study.features), train, bits, guessed, study.learning.base_rate);
  return additiveTables(study, moments, scoring);
}

// The published part of the additive model of any moments; `scoring`: tallies that only score, none for sums.
export function additiveTables({ features, learning }, moments, scoring) {
  const { logOdds, errors, chance } = fit(moments);
  const { rate } = moments;
  const tables = features.map(({ name, cardinality: card }) => {
    const { place } = moments.coordinates.of.get(name);
    const odds = place.map((at) => logOdds[at]);
    const cohort = scoring.filter((one) => one.n > 0 && one.features.includes(name)).map((one) => marginal(reconstruct(one, one), name, one.cards));
    const { f1, auc } = score(odds, cohort.length ? pool(cohort) : null, rate);
    return {
      features: [name], cards: [card], reports: moments.reports(name), f1, auc, weight: learning.score === "f1" ? f1 : auc,
      log_odds: odds, votes: odds.map((one) => Number(one > 0)), errors: place.map((at) => errors[at]),
    };
  });
  return { rate, threshold: chance > ABSTAIN_FROM ? 0.5 : rate, tables, chance };
}

function apart(study, tallies, published) {
  const asked = study.surveys.filter((survey) => survey.kind === "histogram");
  const { ensemble, classifier, score: named, base_rate: guess } = study.learning;
  const of = (survey, part) => reconstruct(survey, tallies.get(survey.survey)[part]);
  const key = (survey) => survey.features.join("\n");
  const groups = gathered(asked, ensemble === "soft" ? key : (survey) => String(survey.survey));
  const histograms = groups.map((surveys) => pool(surveys.map((survey) => of(survey, 0))));
  const scored = new Map(gathered(asked, key).map((surveys) => [key(surveys[0]), pool(surveys.map((survey) => of(survey, 1)))]));
  const rate = baseRate(histograms);
  const tables = histograms.map((histogram, i) => {
    const logOdds = classifier === "soft" ? soft(histogram, rate) : published[i];
    const { f1, auc } = score(logOdds, scored.get(key(groups[i][0])), rate);
    const { features, cards } = groups[i][0];
    return { features, cards, reports: histogram.n, f1, auc, weight: named === "f1" ? f1 : auc, log_odds: logOdds, votes: logOdds.map((one) => Number(one > 0)), errors: [] };
  });
  const chance = chanceOfTables(study.features, asked.map((survey) => told(survey, tallies, 0)), guess);
  return { rate, threshold: ensemble === "soft" ? rate : 0.5, tables, chance };
}

// How often noise alone would count as much, in single features or in cells of several.
function chanceOfTables(features, tables, guess) {
  const answered = tables.filter((one) => one.n > 0);
  if (!answered.length) return 1;
  const names = [...new Set(answered.flatMap((one) => one.features))];
  const single = tested(names.map((name) => features.find((one) => one.name === name)), answered, guess);
  const merged = answered.map((one) => ({ ...one, features: [one.features.join("\n")], cards: [product(one.cards)] }));
  const cells = new Map(merged.map((one) => [one.features[0], one.cards[0]]));
  if (answered.every((one) => one.features.length === 1) || sum([...cells.values()]) > MOST_MERGED) return single;
  const plain = [...cells].map(([name, cardinality]) => ({ name, cardinality, kind: "categorical", missing: "" }));
  return Math.min(1, 2 * Math.min(single, tested(plain, merged, guess)));
}

function tested(features, tables, guess) {
  const moments = gather(coordinatesOf(features.map((one) => ({ ...one, expects: [] }))), tables, [], new Map(), guess);
  return chanceOf(whitened(measurements(moments)), CELL_TAUS);
}

function gathered(surveys, key) {
  const groups = new Map();
  for (const survey of surveys) groups.set(key(survey), [...(groups.get(key(survey)) ?? []), survey]);
  return [...groups.values()];
}

export const learnable = ({ surveys }) => surveys.every((one) => one.kind !== "histogram" || one.m <= 2 * MOST_CELLS);
