// Which documents a study has, in which order, and what each rests on: from heads alone, steps 3 and 5 of an audit.
import { name } from "./findings.js";
import { rounds as histogramRounds } from "./histogram.js";
import { WRITTEN } from "./written.js";

const CLOSING = ["roster", "seed", "credentials"];
const REPORT = ["report", 0];
const ON_IT = "was never published, but what rests on it was";

// The results of a study, in their order.
export function resultsOf(study) {
  const named = { marginals: ["model", "rows"], trees: ["rows"] }[study.design] ?? ["model"];
  return named.map((kind) => [kind, 0]);
}

// The documents of rounds, of each round one.
function summedPlaces(study) {
  if (study.protocol === "histogram") return histogramRounds(study).map((round) => round.document);
  if (study.protocol === "sum") return study.surveys.map((survey) => ["sums", survey.survey]);
  return writtenRounds(study).map((round) => ["page", round]);
}

export const writtenRounds = (study) => [...new Set(study.surveys.map((survey) => survey.round))].sort((a, b) => a - b);

// All documents of rounds: of members who write also what the aggregator's seat says after some of them.
function roundPlaces(study) {
  const seats = WRITTEN[study.protocol]?.seats ?? [];
  return summedPlaces(study).flatMap((place) => (seats.includes(place[1]) ? [place, ["seat", place[1]]] : [place]));
}

function initial(study) {
  return [["manifest", 0], ...(study.arrangement ? [["tellers", 0]] : []), ...(study.given ?? []).map((_, i) => ["given", i])];
}

function following(study) {
  const ends = study.arrangement || WRITTEN[study.protocol] ? [["unsummed", 0]] : [];
  return [...ends, ...study.slots.map((slot) => ["transcript", slot.slot]), ["seed", 1], ...resultsOf(study), REPORT];
}

// Faults as [document, why].
export function orderFaults(study, places) {
  const rounds = roundPlaces(study);
  const expected = [...initial(study), ...CLOSING.map((kind) => [kind, 0]), ...rounds, ...following(study)].map(name);
  const strangers = places.map(name).filter((place) => place !== "abandoned 0" && !expected.includes(place));
  return [
    ...outOfOrder(study, places, expected), ...missing(study, places, rounds), ...leftOut(study, places),
    ...strangers.map((place) => [place, "no such document belongs to the study"]),
  ];
}

function outOfOrder(study, places, all) {
  const first = new Set(initial(study).map(name));
  const rest = places.map(name).filter((place) => !first.has(place));
  if (rest.length === 1 && rest[0] === "abandoned 0") return [];
  let next = 0;
  for (const place of places.map(name)) {
    if (!all.includes(place)) continue;
    const found = all.indexOf(place, next);
    if (found < 0) return [[place, "published out of order"]];
    next = found + 1;
  }
  return [];
}

function missing(study, places, rounds) {
  const kinds = new Set(places.map(([kind]) => kind));
  const rests = { unsummed: CLOSING, transcript: CLOSING, report: [...CLOSING, "transcript"] };
  resultsOf(study).forEach(([kind]) => (rests[kind] = [...CLOSING, "transcript"]));
  const needed = new Set(rounds.some(([kind]) => kinds.has(kind)) ? CLOSING : []);
  for (const kind of kinds) for (const below of rests[kind] ?? []) needed.add(below);
  return [...needed].filter((kind) => !kinds.has(kind)).map((kind) => [kind, ON_IT]);
}

function leftOut(study, places) {
  const there = new Set(places.map(name));
  const ordered = [...resultsOf(study), REPORT].map(name);
  const last = ordered.findLastIndex((place) => there.has(place));
  return ordered.slice(0, Math.max(last, 0)).filter((place) => !there.has(place)).map((place) => [place, ON_IT]);
}

// Faults of a study that ended without the sum of a round, each a sentence.
export function endingFaults(study, round, places) {
  const rounds = summedPlaces(study).map(name);
  const there = new Set(places.map(name));
  const said = `says that round ${round} has no sum, and`;
  const last = following(study).map(name).filter((place) => place !== "unsummed 0");
  // Where members write, the page of that round is there: it shows that too few wrote.
  const later = [...last, ...rounds.slice(round + (WRITTEN[study.protocol] ? 1 : 0))].find((place) => there.has(place));
  const earlier = rounds.slice(0, round).find((place) => !there.has(place));
  return [
    ...(round < rounds.length ? [] : [`names round ${round}, and the study has ${rounds.length}`]),
    ...(later ? [`${said} there is ${later}`] : []), ...(earlier ? [`${said} ${earlier} was never published`] : []),
  ];
}
