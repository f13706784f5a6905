// The verdict of these modules on a case of docs/vectors, by kind: what follows, or a Fault.
import { concat, decode, demand, hex, spelled, unhex } from "./bytes.js";
import * as chain from "./chain.js";
import { Issuer } from "./curve.js";
import { hasRule, knownShares, middleOf, parseCounts, rounds, studyCuts } from "./histogram.js";
import { learn } from "./learn.js";
import { checkStudy, parseManifest } from "./manifest.js";
import { mechanism, supported } from "./mechanisms.js";
import { difference, linearOf, parseModel, rowsOf, tablesOf } from "./models.js";
import { readPage } from "./pages.js";
import { checkPacket, parsePacket, presentationOf, readPackets } from "./packets.js";
import { resultsOf } from "./summed.js";
import { checkCountersignatures, checkSums, parseEnd } from "./sums.js";
import { WRITTEN } from "./written.js";

const TEXTS = new Set(["kind", "name", "p", "q", "model", "result"]);

// Inputs as a file has them, with what the file shares: bytes are hexadecimal there.
function read(given, shared) {
  const filled = (value) => (typeof value === "string" && value.startsWith("@") ? shared[value.slice(1)] : value);
  const made = {};
  for (const [name, value] of Object.entries(given)) {
    if (name === "sums" || name === "counts") made[name] = filled(value);
    else if (Array.isArray(value)) made[name] = value.map((one) => unhex(filled(one)));
    else made[name] = typeof value === "string" && !TEXTS.has(name) ? unhex(filled(value)) : value;
  }
  return made;
}

function manifest(given) {
  return parseManifest(given.manifest);
}

const issuer = (given) => new Issuer(given.key, given.header, given.packets);

// Many cases are about one input.
const found = new WeakMap();

function once(input, work) {
  if (!found.has(input)) found.set(input, work());
  return found.get(input);
}

function isWhat(plain, expected) {
  const wrong = difference(plain, expected);
  demand(wrong === null, `its ${wrong} is not what the inputs give`);
  return {};
}

function board(made, { pages, seats = [] }) {
  const { seats: rounds } = WRITTEN[made.protocol];
  return { pages: new Map(pages.map((body, round) => [round, readPage(made, round, body)])), seats: new Map(seats.map((body, i) => [rounds[i], body])) };
}

const ASKED = {
  manifests(given) {
    const made = manifest(given);
    checkStudy(made);
    return { study: hex(made.id), words: chain.studyWords(made.id), unchecked: made.unchecked };
  },
  cbor(given) {
    decode(given.bytes);
    return {};
  },
  heads(given) {
    const heads = chain.parseChain(given.heads, given.key, given.study);
    return { heads: heads.map((head) => [head.kind, head.part, chain.headWords(head)]) };
  },
  seeds: (given) => ({ value: hex(chain.parseSeed(given.body, given.study, given.commitment)) }),
  "bucket-documents"(given) {
    const document = chain.parseDocument(given.body, given.study, given.kind, given.part);
    return { count: document.count, bits: document.bits };
  },
  buckets(given) {
    chain.parseBucket(given.bucket, chain.parseDocument(given.body, given.study, given.kind, given.part), given.number);
    return {};
  },
  "bucket-contents"(given) {
    const document = chain.parseDocument(given.body, given.study, given.kind, given.part);
    if (given.kind === "roster") return { entries: chain.readRoster(document, given.number, given.content).length };
    if (given.kind === "credentials") return { entries: chain.readCredentials(given.study, given.content, document.count).length };
    return { entries: readPackets(document, given.number, given.content).length };
  },
  signatures(given) {
    demand(chain.verifies(given.key, given.message, given.signature), "the signature does not verify");
    return {};
  },
  credentials(given) {
    const made = issuer(given);
    const entropy = made.entropy(given.seed, given.member);
    demand(made.credentials([{ ...given, entropy }])[0], "the credential does not work");
    return { entropy: hex(spelled(entropy, 32)) };
  },
  tokens(given) {
    demand(issuer(given).tokens([given])[0], "the token does not hold");
    return { tag: hex(given.token.subarray(0, 48)) };
  },
  packets(given) {
    const made = manifest(given);
    const value = chain.parseSeed(given.seed, made.id, made.seed_commitment);
    const packet = parsePacket(given.packet);
    checkPacket(made, packet, chain.studySeed(given.manifest, given.roster, value));
    const header = concat(made.id, chain.bodyDigest(given.roster));
    const shown = { token: packet.token, context: made.slots[packet.slot].context, presentation: presentationOf(packet) };
    demand(new Issuer(made.credential_key, header, made.N).tokens([shown])[0], "the token does not hold");
    return { tag: hex(packet.tag), survey: packet.survey, slot: packet.slot };
  },
  mechanisms(given) {
    const made = mechanism(given.name, given.m, BigInt(given.p), BigInt(given.q));
    return { epsilon: Number(made.epsilon), size: made.size };
  },
  reports: (given) => ({ supports: supported(mechanism(given.name, given.m, BigInt(given.p), BigInt(given.q)), given.report) }),
  counts(given) {
    const made = manifest(given);
    const found = parseCounts(made, [given.kind, given.part], given.body);
    const counts = Object.fromEntries([...found].map(([survey, { n, counts: own }]) => [survey, [n, ...own]]));
    const cuts = rounds(made).length === 1 ? Object.fromEntries(studyCuts(made, found)) : {};
    return { counts, cuts, ...(hasRule(made) && { middle: middleOf(made, found) }) };
  },
  tellers(given) {
    const made = manifest(given);
    checkCountersignatures(given.body, made.id, made.arrangement);
    return {};
  },
  sums(given) {
    const made = manifest(given);
    const [found] = checkSums(made.id, made.arrangement, given.round, given.body, given.members, given.tags);
    return { values: found.values.map(String), summed: found.summed, "left out": found.leftOut };
  },
  ends(given) {
    const made = manifest(given);
    return parseEnd(given.body, made.id, made.arrangement);
  },
  "learned-counts"(given) {
    const made = manifest(given);
    const tallied = new Map(Object.entries(given.counts).map(([survey, parts]) => [Number(survey), parts.map(([n, ...counts]) => ({ n, counts }))]));
    const { model, plain } = parseModel(given.result);
    const learned = once(given.counts, () => learn(made, tallied, knownShares(made, new Map()), model.tables.map((one) => one.log_odds)));
    return isWhat(plain, tablesOf(made, learned, studyCuts(made, new Map())));
  },
  "learned-sums"(given) {
    const made = manifest(given);
    const sums = given.sums.map(([values, summed, up, down]) => ({ values: values.map(BigInt), summed, noise: [BigInt(up), BigInt(down)] }));
    const { tables, linear, rows } = once(given.sums, () => resultsOf(made, sums, given.given));
    const { form, plain } = parseModel(given.result);
    const cuts = new Map(made.features.map((one) => [one.name, one.cuts]));
    return isWhat(plain, form === "rows" ? rowsOf(made, rows) : tables ? tablesOf(made, tables, cuts) : linearOf(made, linear));
  },
  boards(given) {
    const made = manifest(given);
    const { pages, seats } = board(made, given);
    for (const round of pages.keys()) {
      const known = (all) => new Map([...all].filter(([at]) => at <= round));
      demand(!WRITTEN[made.protocol].ends(made, round, { pages: known(pages), seats: known(seats) }), `too few wrote in round ${round}`);
    }
    return {};
  },
  "learned-pages"(given) {
    const made = manifest(given);
    const expected = WRITTEN[made.protocol].result(made, board(made, given), given.given);
    return isWhat(parseModel(given.result).plain, expected);
  },
  models: (given) => ({ form: parseModel(given.model).form }),
};

export function vectorVerdict(kind, given, shared) {
  return ASKED[kind](read(given, shared));
}

// The tokens of one issuer in one batch.
export function tokensTogether(some, shared) {
  const given = some.map((one) => read(one, shared));
  return issuer(given[0]).tokens(given);
}
