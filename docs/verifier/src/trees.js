// Private trees that members posted, and the rows that everybody draws from them (docs/protocol.md, "Private trees").
import { exactSum } from "./algebra.js";
import { demand, utf8 } from "./bytes.js";
import { categoryTexts } from "./graphical.js";
import { nearestShares, ratio } from "./mechanisms.js";
import { rowsOf } from "./models.js";
import { Coins } from "./streams.js";

const [SPLIT, COUNT, TOTAL] = [18, 9, 8];
const [DEEPEST, MOST_PLACES, MOST_CLASSES] = [7, 64, 16];
const dashes = (size) => "-".repeat(size);
const whole = (feature) => (1n << BigInt(feature.cardinality)) - 1n;

export const trees = {
  seats: [],
  ends: (study, round, { pages }) => !readTrees(planOf(study), pages.get(0)).length,
  result(study, { pages }) {
    const plan = planOf(study);
    const roots = readTrees(plan, pages.get(0));
    demand(roots.length, "trees: no member posted one");
    return rowsOf(study, drawnFrom(plan, roots, [utf8("anonml/1/drawn-rows"), study.id, pages.get(0).digest]));
  },
};

function planOf(study) {
  const [survey] = study.surveys;
  demand(survey.kind === "tree" && survey.parameters.length === 3, "manifest: its survey is not that of trees");
  const [depth, rows, targeted] = survey.parameters.map(Number);
  const asked = survey.features.map((name) => study.features.find((feature) => feature.name === name));
  const target = targeted ? asked.pop() : null;
  const classes = target ? target.cardinality : 2;
  const half = survey.epsilon / 2n;
  const split = asked.length > 0 && asked.length < 100 && asked.every(({ cardinality }) => cardinality >= 2 && cardinality <= MOST_PLACES);
  demand(split && depth >= 1 && depth <= DEEPEST && classes >= 2 && classes <= MOST_CLASSES && half >= 1n, "manifest: its trees cannot be grown");
  const texts = [...asked.map(categoryTexts), target ? categoryTexts(target) : ["0", "1"]];
  return { depth, rows, features: asked, classes, half, texts, label: target?.name ?? study.label.name };
}

// The variance of a count below so many splits, of its first noise, and at a leaf of its second one too; up to a factor of 2.
function spreadAt({ depth, half }, level, leaf) {
  const parts = (level ? 9n : 0n) + (leaf ? 16n * BigInt(depth - level) ** 2n : 0n);
  return ratio((4_000_000_000n * BigInt(depth)) ** 2n, half ** 2n * parts);
}

// Reading

// The trees of a page, in the order of tags. A text that is none is left out.
function readTrees(plan, page) {
  return [...page.texts.get(0).values()].map((text) => readTree(plan, text)).filter((root) => root !== null);
}

// The root of a tree in its one spelling, or null.
function readTree(plan, bytes) {
  const size = SPLIT + COUNT * plan.classes;
  const nodes = 2 ** (plan.depth + 1) - 1;
  if (bytes.length !== TOTAL + 1 + nodes * (size + 1) || bytes.some((byte) => byte > 127)) return null;
  const [first, ...lines] = String.fromCharCode(...bytes).split("\n");
  const formed = first === dashes(TOTAL) && lines.length === nodes + 1 && lines.at(-1) === "";
  if (!formed || lines.slice(0, -1).some((line) => line.length !== size)) return null;
  const reading = { plan, lines, ok: true };
  const root = readNode(reading, 0, nodes, plan.features.map(whole), 0);
  return reading.ok ? root : null;
}

// The node of line `at`, with those in the `size` lines from there on; null where none stands.
function readNode(reading, at, size, active, level) {
  const { plan, lines } = reading;
  const wrong = () => ((reading.ok = false), null);
  const counts = countsIn(lines[at].slice(SPLIT), plan.classes);
  const split = splitIn(lines[at].slice(0, SPLIT), active);
  if (!counts || split === undefined) return wrong();
  if (split === null) {
    if (lines.slice(at + 1, at + size).some((line) => line !== dashes(line.length))) return wrong();
    return counts.length ? { counts, spread: spreadAt(plan, level, true) } : level ? null : wrong();
  }
  if (counts.length > 0 !== level > 0 || size === 1) return wrong();
  const half = (size - 1) / 2;
  const sides = [split.first, active[split.feature] & ~split.first];
  const children = sides.map((places, i) => readNode(reading, at + 1 + i * half, half, active.with(split.feature, places), level + 1));
  if (!children[0] || !children[1]) return wrong();
  return { counts, spread: level ? spreadAt(plan, level, false) : 0, split, children };
}

function countsIn(text, classes) {
  if (text === dashes(COUNT * classes)) return [];
  const parts = text.match(/.{9}/gs);
  return parts.every((part) => /^[+-]\d{8}$/.test(part) && part !== "-00000000") ? parts.map(Number) : null;
}

// Null where there is none, undefined for something else.
function splitIn(text, active) {
  if (text === dashes(SPLIT)) return null;
  if (!/^\d{2}[0-9a-f]{16}$/.test(text)) return undefined;
  const feature = Number(text.slice(0, 2));
  const first = BigInt(`0x${text.slice(2)}`);
  const places = active[feature] ?? 0n;
  return (first & ~places) === 0n && first !== 0n && first !== places ? { feature, first } : undefined;
}

// Consistent counts

// Counts that add up, are not negative, and stand for `most` rows at most.
function consistentTree(root, most) {
  const found = settledFrom(root, null);
  return exactSum(found.counts) <= most ? found : settledFrom(root, most);
}

function settledFrom(root, total) {
  const up = upwards(root);
  if (total === null) return settled(up, up.counts.map((count) => Math.max(count, 0)));
  const missing = (total - exactSum(up.counts)) / up.counts.length;
  return settled(up, parted(up.counts.map((count) => count + missing), total));
}

// The best estimate of each node from its own counts and those below; `spread` becomes its variance.
function upwards(node) {
  if (!node.children) return node;
  const children = node.children.map(upwards);
  const below = children[0].spread + children[1].spread;
  const sums = children[0].counts.map((count, i) => count + children[1].counts[i]);
  if (!node.counts.length) return { ...node, children, counts: sums, spread: below };
  const weight = below / (below + node.spread);
  const counts = node.counts.map((own, i) => weight * own + (1 - weight) * sums[i]);
  return { ...node, children, counts, spread: weight * node.spread };
}

// The tree below a node whose counts are fixed: children share what is missing by their variances.
function settled(node, counts) {
  if (!node.children) return { ...node, counts };
  const [first, second] = node.children;
  const below = first.spread + second.spread;
  const own = counts.map((count, i) => {
    const lack = count - (first.counts[i] + second.counts[i]);
    return parted([first, second].map((child) => child.counts[i] + (lack * child.spread) / below), count);
  });
  return { ...node, counts, children: node.children.map((child, side) => settled(child, own.map((both) => both[side]))) };
}

const parted = (numbers, total) => (total <= 0 ? numbers.map(() => 0) : nearestShares(numbers.map((one) => one / total)).map((share) => total * share));

// Rows

function drawnFrom(plan, roots, grounds) {
  const settledRoots = roots.map((root) => consistentTree(root, plan.rows));
  const coins = new Coins(grounds);
  const rows = settledRoots.flatMap((root) => [...drawnOf(plan, root, coins)]);
  const counted = rows.map(() => new Uint32Array(plan.classes));
  for (const root of settledRoots.map(voting)) rows.forEach((row, i) => (counted[i][answer(root, row)] += 1));
  const cells = rows.map((row, i) => [...row, largest(counted[i])].map((place, column) => plan.texts[column][place]));
  return { columns: [...plan.features.map((feature) => feature.name), plan.label], rows: cells };
}

function* leaves(node, active) {
  if (!node.split) return yield { node, active };
  const { feature, first } = node.split;
  yield* leaves(node.children[0], active.with(feature, first));
  yield* leaves(node.children[1], active.with(feature, active[feature] & ~first));
}

function* drawnOf(plan, root, coins) {
  let before = 0;
  for (const { node, active } of leaves(root, plan.features.map(whole))) {
    const after = before + exactSum(node.counts.map((count) => Math.max(count, 0)));
    const inside = active.map((places) => Array.from({ length: MOST_PLACES }, (_, place) => place).filter((place) => (places >> BigInt(place)) & 1n));
    for (let left = Math.floor(after + 0.5) - Math.floor(before + 0.5); left > 0; left--) yield inside.map((places) => places[coins.below(places.length)]);
    before = after;
  }
}

// The same tree with what a vote needs alone.
function voting({ split, children, counts }) {
  if (!split) return { feature: -1, label: largest(counts) };
  const second = Uint8Array.from({ length: MOST_PLACES }, (_, place) => Number(!((split.first >> BigInt(place)) & 1n)));
  return { feature: split.feature, second, children: children.map(voting) };
}

function answer(root, row) {
  let node = root;
  while (node.feature >= 0) node = node.children[node.second[row[node.feature]]];
  return node.label;
}

// The place of the largest number, the first of several.
const largest = (numbers) => numbers.reduce((best, one, i) => (one > numbers[best] ? i : best), 0);
