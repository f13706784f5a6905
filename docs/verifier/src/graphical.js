// Rows drawn from a graphical model of summed tables (docs/protocol.md, "Rows").
import { shake256 } from "@noble/hashes/sha3.js";
import { range, sum } from "./algebra.js";
import { encode, utf8 } from "./bytes.js";
import { marginal } from "./summed.js";

const WHOLE = 2 ** 30;

// A table's cells by label: [cells of no, cells of yes].
const byLabel = (cells) => [0, 1].map((label) => [...cells].filter((_, i) => i % 2 === label));
const squares = (numbers) => sum(numbers.map((one) => one * one));

function keptOf(beyond, noise) {
  const size = squares(beyond);
  return size > 0 ? Math.max(0, 1 - noise / size) : 0;
}

// The nearest vector without a negative entry that has this sum.
function nearest(shares, total = 1) {
  const falling = [...shares].sort((a, b) => b - a);
  let [running, off] = [0, null];
  falling.forEach((share, i) => {
    running += share;
    const excess = (running - total) / (i + 1);
    if (off === null || (total > 0 && share - excess >= 0)) off = excess;
  });
  return shares.map((share) => Math.max(share - off, 0));
}

const nearestGiven = (two, label) => two.map((cells, sign) => nearest(cells, label[sign]));

function shrunk(shares, variance) {
  const alike = 1 / shares.length;
  const beyond = shares.map((share) => share - alike);
  const kept = keptOf(beyond, variance * (shares.length - 1));
  return beyond.map((one) => alike + kept * one);
}

function margin(name, tables, label) {
  let [total, precision] = [null, 0];
  for (const table of tables.filter((one) => one.features.includes(name))) {
    const { cells } = marginal(table, [table.features.indexOf(name), table.shape.length - 1]);
    const weight = cells.length / table.shares.length;
    total = (total ?? Array(cells.length).fill(0)).map((one, i) => one + weight * cells[i]);
    precision += weight;
  }
  const card = total.length / 2;
  let two = byLabel(total.map((one) => one / precision));
  two = two.map((own, sign) => own.map((share) => share + (label[sign] - sum(own)) / card));
  const wide = (tables[0].variance / precision) * 2;
  const alone = nearest(shrunk(two[0].map((_, i) => two[0][i] + two[1][i]), wide));
  const apart = two.map((own, sign) => own.map((share, i) => share - alone[i] * label[sign]));
  const kept = keptOf(apart.flat(), wide * squares(label) * (card - 1));
  return nearestGiven(apart.map((own, sign) => own.map((one, i) => alone[i] * label[sign] + kept * one)), label);
}

// Two features with the label, moved onto their margins and shrunk. Cells: row after row, by label.
function joint(table, first, second, label) {
  const [rows, columns] = table.cards;
  const [row, column] = [(i) => Math.floor(i / columns), (i) => i % columns];
  let two = byLabel(table.shares).map((own, sign) => {
    const sums = range(rows).map((r) => sum(own.slice(r * columns, (r + 1) * columns)));
    return own.map((share, i) => share + (first[sign][row(i)] - sums[row(i)]) / columns);
  });
  two = two.map((own, sign) => {
    const sums = range(columns).map((c) => sum(own.filter((_, i) => column(i) === c)));
    return own.map((share, i) => share + (second[sign][column(i)] - sums[column(i)]) / rows);
  });
  const apart = two.map((own, sign) => own.map((_, i) => (first[sign][row(i)] * second[sign][column(i)]) / Math.max(label[sign], 1e-300)));
  const noise = table.variance * 2 * squares(label) * (rows - 1) * (columns - 1);
  const beyond = two.map((own, sign) => own.map((share, i) => share - apart[sign][i]));
  const alike = [0, 1].map((sign) => beyond[0].map((_, i) => (beyond[0][i] + beyond[1][i]) * label[sign]));
  const rest = beyond.map((own, sign) => own.map((one, i) => one - alike[sign][i]));
  const [one, other] = [alike, rest].map((part) => keptOf(part.flat(), noise));
  return nearestGiven(two.map((own, sign) => own.map((_, i) => one * alike[sign][i] + other * rest[sign][i] + apart[sign][i])), label);
}

// The mutual information given the label, in nats, to nine decimals.
function information(two, columns) {
  const found = sum(two.map((own) => {
    const whole = sum(own);
    const across = own.map((_, i) => sum(own.slice(i - (i % columns), i - (i % columns) + columns)));
    const down = own.map((_, i) => sum(own.filter((__, j) => j % columns === i % columns)));
    return sum(own.map((share, i) => (share > 0 ? share * Math.log((share * whole) / (across[i] * down[i])) : 0)));
  }));
  return Math.max(0, Number(found.toFixed(9)));
}

// Each feature's parent in the tree of largest information, parents first.
function parents(names, told) {
  const near = new Map(names.map((name) => [name, []]));
  const root = new Map(names.map((name) => [name, name]));
  const at = (name) => names.indexOf(name);
  const order = [...told].sort((a, b) => b.information - a.information || at(a.pair[0]) - at(b.pair[0]) || at(a.pair[1]) - at(b.pair[1]));
  for (const { pair: [first, second], information: size } of order) {
    const [from, to] = [root.get(first), root.get(second)];
    if (!(size > 0) || from === to) continue;
    near.get(first).push(second);
    near.get(second).push(first);
    for (const [name, end] of root) if (end === to) root.set(name, from);
  }
  const found = new Map();
  for (const start of names) {
    const waiting = found.has(start) ? [] : [[start, ""]];
    while (waiting.length) {
      const [name, parent] = waiting.shift();
      found.set(name, parent);
      for (const other of near.get(name)) if (other !== parent) waiting.push([other, name]);
    }
  }
  return found;
}

const given = (own, otherwise) => (sum(own) > 0 ? own.map((one) => one / sum(own)) : otherwise);

// The features, each after its parent, with chances by label and the parent's category.
function leanings(tables, label) {
  const names = [...new Set(tables.flatMap((table) => table.features))];
  const margins = new Map(names.map((name) => [name, margin(name, tables, label)]));
  const pairs = tables.filter((table) => table.features.length === 2).map((table) => {
    const cells = joint(table, ...table.features.map((name) => margins.get(name)), label);
    return { pair: table.features, cells, columns: table.cards[1], information: information(cells, table.cards[1]) };
  });
  return [...parents(names, pairs)].map(([name, parent]) => {
    const card = margins.get(name)[0].length;
    const alone = margins.get(name).map((own) => given(own, Array(card).fill(1 / card)));
    if (!parent) return { name, parent, chances: alone.map((own) => [own]) };
    const { pair, cells, columns } = pairs.find((one) => one.pair.includes(name) && one.pair.includes(parent));
    const wide = margins.get(parent)[0].length;
    const cell = pair[0] === parent ? (above, own) => above * columns + own : (above, own) => own * columns + above;
    const chances = cells.map((two, sign) => range(wide).map((above) => given(range(card).map((own) => two[cell(above, own)]), alone[sign])));
    return { name, parent, chances };
  });
}

// The rows of texts that a study publishes.
export function drawnRows(study, tables, { values, summed }, rate, count) {
  const label = [1 - rate, rate];
  const made = leanings(tables, label);
  const seed = encode([utf8("anonml/1/drawn-rows"), study.id, summed, values]);
  const stream = shake256(seed, { dkLen: 8 * count * (made.length + 1) });
  const view = new DataView(stream.buffer, stream.byteOffset);
  const keys = (which) => range(count).map((i) => [view.getUint32(8 * (which * count + i)), view.getUint32(8 * (which * count + i) + 4)]);
  const found = new Map([["", spread(keys(0), label)]]);
  made.forEach(({ name, parent, chances }, i) => {
    const [own, drawn] = [keys(i + 1), Array(count).fill(0)];
    const above = parent ? found.get(parent) : drawn.slice();
    chances.forEach((rows, sign) => rows.forEach((row, category) => {
      const there = range(count).filter((at) => found.get("")[at] === sign && above[at] === category);
      spread(there.map((at) => own[at]), row).forEach((one, k) => (drawn[there[k]] = one));
    }));
    found.set(name, drawn);
  });
  const texts = study.features.map(categoryTexts);
  const cells = range(count).map((at) => [...study.features.map(({ name }, f) => texts[f][found.get(name)[at]]), String(found.get("")[at])]);
  return { columns: [...study.features.map((one) => one.name), study.label.name], rows: cells };
}

// Categories by their chances; the keys' order decides who gets which.
function spread(keys, chances) {
  if (!keys.length) return [];
  let whole = 0;
  const ends = chances.map((chance) => (whole += Math.round(chance * WHOLE)));
  const start = Number((BigInt(keys[0][1]) * BigInt(whole)) >> 32n);
  const order = range(keys.length).sort((a, b) => keys[a][0] - keys[b][0] || a - b);
  const found = Array(keys.length);
  order.forEach((at, i) => {
    const place = Math.floor((i * whole + start) / keys.length);
    found[at] = ends.findIndex((end) => end > place);
  });
  return found;
}

export function categoryTexts({ kind, categories, range: ends, cuts, cardinality }) {
  if (kind === "categorical") return [...categories, ""].slice(0, cardinality);
  const [low, ...others] = [ends[0], ...cuts, ends[1]].map(general);
  const later = others.slice(1).map((right, i) => `(${others[i]}, ${right}]`);
  return [`[${low}, ${others[0]}]`, ...later, ""].slice(0, cardinality);
}

// Fifteen digits, without zeros at the end; an exponent below 1e-4 and from 1e15 on.
function general(value) {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [digits, power] = value.toExponential(14).split("e");
  const exponent = Number(power);
  const plain = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (exponent >= -4 && exponent < 15) return plain(value.toFixed(14 - exponent));
  return `${plain(digits)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
