// The JSON of published results: one spelling, and what a model must be (docs/protocol.md, "Models").
import { LEVEL } from "./additive.js";
import { demand, hex } from "./bytes.js";
import { different, float, floatText, int, list, oneOf, small, table, text } from "./forms.js";
import { scaled } from "./histogram.js";
import { FEATURE, LABEL } from "./manifest.js";

// Reading. Integers are BigInt, floats Number; a repeated key or a number that is not finite is a Fault.

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

export function readJson(source) {
  const reader = new Json(source);
  const value = reader.value(200);
  reader.blank();
  demand(reader.at === source.length, "something follows the JSON");
  return value;
}

class Json {
  constructor(source) {
    this.source = source;
    this.at = 0;
  }

  blank() {
    while (" \t\n\r".includes(this.source[this.at] ?? "x")) this.at += 1;
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source);
    demand(found, "no JSON");
    this.at = pattern.lastIndex;
    return found;
  }

  take(letter) {
    this.blank();
    const there = this.source[this.at] === letter;
    if (there) this.at += 1;
    return there;
  }

  value(deep) {
    demand(deep > 0, "nested too deeply");
    if (this.take("{")) return this.map(deep);
    if (this.take("[")) return this.list(deep);
    if (this.source[this.at] === '"') return JSON.parse(this.match(STRING)[0]);
    for (const [word, value] of [["true", true], ["false", false], ["null", null]]) {
      if (this.source.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const [whole, fraction, exponent] = this.match(NUMBER);
    if (fraction === undefined && exponent === undefined) return BigInt(whole);
    demand(Number.isFinite(Number(whole)), "a number that is not finite");
    return Number(whole);
  }

  list(deep) {
    const items = [];
    if (this.take("]")) return items;
    do items.push(this.value(deep - 1)); while (this.take(","));
    demand(this.take("]"), "no JSON");
    return items;
  }

  map(deep) {
    const found = new Map();
    if (this.take("}")) return found;
    do {
      this.blank();
      const key = JSON.parse(this.match(STRING)[0]);
      demand(this.take(":") && !found.has(key), "a repeated key, or no JSON");
      found.set(key, this.value(deep - 1));
    } while (this.take(","));
    demand(this.take("}"), "no JSON");
    return found;
  }
}

const escaped = (value) => JSON.stringify(value).replace(/[\x7f-\uffff]/g, (one) => (one === "\x7f" ? one : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`));

export function spelledJson(value) {
  if (value instanceof Map) {
    const rows = [...value].sort(([a], [b]) => codeOrder(a, b)).map(([key, one]) => `${escaped(key)}:${spelledJson(one)}`);
    return `{${rows.join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(spelledJson).join(",")}]`;
  if (typeof value === "string") return escaped(value);
  return typeof value === "number" ? floatText(value) : String(value);
}

function codeOrder(a, b) {
  const [left, right] = [[...a], [...b]];
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

// Forms

const chance = (value, at) => (value === null ? null : within(0, 1)(value, at));
const flag = (value, at) => {
  demand(value === null || typeof value === "boolean", `${at}: expected true, false or null`);
  return value;
};
const within = (least, most) => (value, at) => {
  demand(typeof value === "number" && value >= least && value <= most, `${at}: expected a number from ${least} to ${most}`);
  return value;
};
const anyFloat = (value, at) => {
  demand(typeof value === "number", `${at}: expected a float`);
  return value;
};
const one = int(1, 2);

const TABLE = table(
  {
    features: list(text), cards: list(small(1, 2 ** 31)), reports: small(0, 2 ** 53), f1: anyFloat, auc: anyFloat, weight: float,
    log_odds: list(float), votes: list(small(0, 2)), errors: list(float),
  },
  {},
  (made, at) => {
    const cells = made.cards.reduce((all, card) => all * card, 1);
    demand(made.features.length && made.features.length === made.cards.length && different(made.features), `${at}: expected different features`);
    demand(made.log_odds.length === cells && made.votes.length === cells, `${at}: expected ${cells} log_odds and votes`);
    demand(!made.errors.length || (made.errors.length === cells && Math.min(...made.errors) >= 0), `${at}: expected an error for each cell`);
    demand(made.weight >= 0, `${at}: expected nothing negative`);
  },
);

const CUTS = table({ feature: text, cuts: list(float) }, {}, (made, at) =>
  demand(made.cuts.every((cut, i) => i === 0 || made.cuts[i - 1] <= cut), `${at}: expected cuts in increasing order`));

const BELIEF = table({
  features: small(0, 2 ** 53), heard: within(0, 1), members: small(0, 2 ** 53), against: within(0, 1), contradicted: flag, enough: small(0, 2 ** 53),
});

const named = (made, at) => {
  demand(different([...made.features.map((feature) => feature.name), made.label.name]), `${at}: a name means two things`);
};

const TABLES = table(
  {
    version: one, study: text, title: text, label: LABEL, features: list(FEATURE), cuts: list(CUTS), ensemble: oneOf("soft", "vote"),
    classifier: oneOf("soft", "logistic", "tree", "additive"), base_rate: within(0, 1), threshold: within(0, 1), tables: list(TABLE),
    chance, shown: flag,
  },
  { belief: BELIEF },
  (made, at) => {
    demand(made.base_rate > 0 && made.base_rate < 1 && made.features.length, `${at}: expected a base rate between 0 and 1, and features`);
    named(made, at);
    const numeric = made.features.filter((feature) => feature.kind === "numeric").map((feature) => feature.name);
    demand(made.cuts.length === numeric.length && numeric.every((name) => made.cuts.some((cuts) => cuts.feature === name)), `${at}.cuts: expected those of each numeric feature`);
    const cards = new Map(made.features.map((feature) => [feature.name, cardinality(made, feature)]));
    const fits = (own) => own.features.every((name, i) => cards.get(name) === own.cards[i]);
    demand(made.tables.every(fits), `${at}.tables: unknown features or wrong cards`);
  },
);

function cardinality(model, feature) {
  if (feature.kind === "categorical") return feature.cardinality;
  return model.cuts.find((cuts) => cuts.feature === feature.name).cuts.length + 1 + (feature.missing === "own" ? 1 : 0);
}

const COLUMN = table({ name: text, centre: float, width: float, reach: small(1, 2 ** 53) }, { scale: oneOf("log") }, (made, at) => demand(made.width > 0, `${at}: expected a width above 0`));

function demandColumns(made, at) {
  named(made, at);
  const names = made.columns.map((column) => column.name);
  demand(names.length && different(names) && made.weights.length === names.length, `${at}: expected different columns, and a weight for each`);
  const numeric = made.features.every((feature) => feature.kind === "numeric" && names.includes(feature.name));
  demand(numeric && made.features.length === names.length, `${at}: expected a column for each feature`);
  return names;
}

const LINEAR = table(
  {
    form: oneOf("linear"), version: one, study: text, title: text, label: LABEL, features: list(FEATURE), columns: list(COLUMN),
    weights: list(float), intercept: float, target: (value, at) => (value === null ? null : COLUMN(value, at)), threshold: within(0, 1), chance, shown: flag,
  },
  { many: oneOf(true) },
  (made, at) => {
    const names = demandColumns(made, at);
    demand(!made.target || ![...names, made.label.name].includes(made.target.name), `${at}.target: expected another name`);
  },
);

const GROUP = table({ aggregation: small(1, 2 ** 53), group: small(1, 2 ** 53), members: small(1, 2 ** 53), weights: list(float), intercept: float });

const ENSEMBLE = table(
  {
    form: oneOf("ensemble"), version: one, study: text, title: text, label: LABEL, features: list(FEATURE), columns: list(COLUMN), models: list(GROUP),
    threshold: within(0, 1), chance, shown: flag,
  },
  { many: oneOf(true) },
  (made, at) => {
    const places = made.models.map((own) => [own.aggregation, own.group]);
    const ordered = places.every(([aggregation, group], i) => !i || places[i - 1][0] < aggregation || (places[i - 1][0] === aggregation && places[i - 1][1] < group));
    demand(places.length && ordered, `${at}.models: expected those of different groups, in their order`);
    made.models.forEach((own) => demandColumns({ ...made, ...own }, at));
  },
);

const ROWS = table({ form: oneOf("rows"), version: one, study: text, title: text, columns: list(text), rows: list(list(text), 1_000_000) }, {}, (made, at) => {
  demand(made.columns.length && different(made.columns), `${at}.columns: expected different names`);
  demand(made.rows.every((row) => row.length === made.columns.length), `${at}.rows: expected a text for every column`);
});

const FORMS = { linear: LINEAR, rows: ROWS, ensemble: ENSEMBLE };

// A valid result in its one spelling: { form, model, plain }.
export function parseModel(source) {
  const plain = readJson(source);
  demand(plain instanceof Map, "model: expected a table");
  const form = plain.has("form") ? plain.get("form") : "tables";
  demand(form === "tables" || Object.hasOwn(FORMS, form), "model: of an unknown form");
  demand(`${spelledJson(plain)}\n` === source, "model: not in its one spelling");
  return { form, model: (FORMS[form] ?? TABLES)(plain, "model"), plain };
}

// Results as they must be

const whole = (numbers) => numbers.map(BigInt);
const heading = ({ id, title }) => ({ version: 1n, study: hex(id), title });

// Tables of `found`, as a study publishes them; `cuts` of numeric features by name.
export function tablesOf(study, found, cuts) {
  const { plain, learning, features } = study;
  const told = { ...heading(study), label: plain.get("label"), features: plain.get("features"), ensemble: learning.ensemble, classifier: learning.classifier };
  if (study.protocol === "sum" || found.belief) Object.assign(told, { ensemble: "soft", classifier: "additive" });
  const tables = found.tables.map((one) => ({ ...one, cards: whole(one.cards), reports: BigInt(one.reports), votes: whole(one.votes) }));
  const made = { ...told, base_rate: found.rate, threshold: found.threshold, tables, chance: found.chance, shown: found.chance <= LEVEL };
  made.cuts = features.filter((one) => one.kind === "numeric").map(({ name }) => ({ feature: name, cuts: cuts.get(name) }));
  if (found.belief) made.belief = { ...found.belief, ...Object.fromEntries(["features", "members", "enough"].map((name) => [name, BigInt(found.belief[name])])) };
  return made;
}

function columnOf(feature) {
  const [low, high] = scaled(feature);
  return { name: feature.name, centre: (low + high) / 2, width: (high - low) / 2, reach: 1n, ...(feature.scale === "log" && { scale: "log" }) };
}

export function linearOf(study, { names, target, weights, intercept, chance = null }) {
  const of = (name) => study.features.find((one) => one.name === name);
  const features = names.map((name) => study.plain.get("features")[study.features.indexOf(of(name))]);
  const told = { ...heading(study), form: "linear", label: study.plain.get("label"), features, columns: names.map((name) => columnOf(of(name))) };
  return { ...told, weights, intercept, target: target && columnOf(of(target)), threshold: 0.5, chance, shown: chance === null ? null : chance <= LEVEL, ...(study.records && { many: true }) };
}

// The ensemble of groups' models, over the columns of these features.
export function ensembleOf(study, names, models) {
  const { weights, intercept, target, ...told } = linearOf(study, { names, target: null });
  const made = models.map((one) => ({ ...one, aggregation: BigInt(one.aggregation), group: BigInt(one.group), members: BigInt(one.members) }));
  return { ...told, form: "ensemble", models: made };
}

export const rowsOf = (study, { columns, rows }) => ({ ...heading(study), form: "rows", columns, rows });

// The first field in which a published result differs, or null: floats are compared up to rounding.
export function difference(published, expected) {
  const keys = [...new Set([...published.keys(), ...Object.keys(expected)])].sort();
  return keys.find((key) => !alike(published.get(key), expected[key])) ?? null;
}

const near = (a, b) => Math.abs(a - b) <= Math.max(1e-6 * Math.max(Math.abs(a), Math.abs(b)), 1e-9);

function alike(own, found) {
  if (typeof own === "number" && typeof found === "number") return near(own, found);
  if (Array.isArray(own) && found?.length !== undefined && typeof found !== "string") return own.length === found.length && own.every((one, i) => alike(one, found[i]));
  if (!(own instanceof Map) || found === null || typeof found !== "object") return own === found;
  const other = found instanceof Map ? Object.fromEntries(found) : found;
  return own.size === Object.keys(other).length && difference(own, other) === null;
}
