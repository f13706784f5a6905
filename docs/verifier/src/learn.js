// Tables that are learned one by one from histograms: the soft ensemble and votes (docs/protocol.md, "Tables of a histogram").
import { tally } from "./histogram.js";
import { SCALE, nearestShares, ratio, unbiased } from "./mechanisms.js";

const EXTREME = 0.02;
const MOST_CELLS = 400; // beyond, the linear equations take minutes here
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const clip = (value, low, high) => Math.min(Math.max(value, low), high);
const unit = (value) => clip(value, 0, 1);

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

// The chances that a report supports the true category and a given other, and two given others.
function joint({ name, m, p, q, w }) {
  if (name !== "subset") return [ratio(p * q, SCALE * SCALE), ratio(q * q, SCALE * SCALE)];
  const [M, W] = [BigInt(m), BigInt(w)];
  const pairs = m === 2 ? 0 : ratio((W - 1n) * (p * (W - 2n) + (SCALE - p) * W), SCALE * (M - 1n) * (M - 2n));
  return [ratio(p * (W - 1n), SCALE * (M - 1n)), pairs];
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

// Gauss with partial pivoting.
function solve(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  const n = rows.length;
  for (let at = 0; at < n; at++) {
    let best = at;
    for (let i = at + 1; i < n; i++) if (Math.abs(rows[i][at]) > Math.abs(rows[best][at])) best = i;
    [rows[at], rows[best]] = [rows[best], rows[at]];
    for (let i = at + 1; i < n; i++) {
      const factor = rows[i][at] / rows[at][at];
      for (let j = at; j <= n; j++) rows[i][j] -= factor * rows[at][j];
    }
  }
  const solved = Array(n).fill(0);
  for (let i = n - 1; i >= 0; i--) {
    const known = sum(rows[i].slice(i + 1, n).map((one, j) => one * solved[i + 1 + j]));
    solved[i] = (rows[i][n] - known) / rows[i][i];
  }
  return solved;
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

export const learnable = ({ learning, surveys }) => learning.classifier !== "additive" && surveys.every((one) => one.kind !== "histogram" || one.m <= 2 * MOST_CELLS);

// Base rate and tables from the reports that train and those that only score: `reports` by survey, [train, score].
// `published`: the log-odds of its tables, where the classifier is one that is not repeated here.
export function learn(study, reports, published) {
  const asked = study.surveys.filter((survey) => survey.kind === "histogram");
  const { ensemble, classifier, score: named } = study.learning;
  const of = (survey, part) => reconstruct(survey, tally(survey, reports.get(survey.survey)?.[part] ?? []));
  const key = (survey) => survey.features.join("\n");
  const groups = gathered(asked, ensemble === "soft" ? key : (survey) => String(survey.survey));
  const histograms = groups.map((surveys) => pool(surveys.map((survey) => of(survey, 0))));
  const scored = new Map(gathered(asked, key).map((surveys) => [key(surveys[0]), pool(surveys.map((survey) => of(survey, 1)))]));
  const rate = baseRate(histograms);
  const tables = histograms.map((histogram, i) => {
    const logOdds = classifier === "soft" ? soft(histogram, rate) : published[i];
    const { f1, auc } = score(logOdds, scored.get(key(groups[i][0])), rate);
    const { features, cards } = groups[i][0];
    return { features, cards, reports: histogram.n, f1, auc, weight: named === "f1" ? f1 : auc, log_odds: logOdds, votes: logOdds.map((one) => Number(one > 0)) };
  });
  return { rate, threshold: ensemble === "soft" ? rate : 0.5, tables };
}

function gathered(surveys, key) {
  const groups = new Map();
  for (const survey of surveys) groups.set(key(survey), [...(groups.get(key(survey)) ?? []), survey]);
  return [...groups.values()];
}
