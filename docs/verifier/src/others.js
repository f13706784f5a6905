// Files of a folder beside the documents: copies must be the same bytes, and every other file is named.
import { Fault, same, utf8 } from "./bytes.js";
import * as chain from "./chain.js";
import { name } from "./findings.js";
import { parseModel } from "./models.js";
import { resultsOf } from "./order.js";

const BUCKETED = ["roster", "credentials", "transcript"];

export async function checkOthers({ folder, study, chain: heads }, found) {
  const copies = await copiesOf(folder, study, heads);
  const known = await documentFiles(folder, study, heads);
  for (const file of folder.names) {
    if (copies.has(file)) {
      const there = await folder.read(file);
      if (!copies.get(file) || !same(there, copies.get(file))) found.fault(file, "is not what was signed; do not open it, and ask for it anew");
    } else if (!known.has(file)) found.skip(file, "it belongs to no document");
  }
}

async function copiesOf(folder, study, heads) {
  const copies = new Map([["fingerprints.txt", utf8(chain.fingerprints(study.id, heads))]]);
  const results = resultsOf(study).map(([kind, part]) => [part ? `${kind}-${part}.json` : `${kind}.json`, name([kind, part])]);
  for (const [file, place] of [["report.html", "report 0"], ...results]) {
    const head = heads.find((one) => name([one.kind, one.part]) === place);
    copies.set(file, (head && (await folder.read(`documents/${head.number}`))) || null);
    if (place === "rows 0" && copies.get(file)) copies.set("rows.csv", csvOf(copies.get(file)));
  }
  return copies;
}

async function documentFiles(folder, study, heads) {
  const known = new Set(["heads", ...heads.map((head) => `documents/${head.number}`)]);
  for (const head of heads.filter((one) => BUCKETED.includes(one.kind))) {
    const body = await folder.read(`documents/${head.number}`);
    try {
      const { buckets } = chain.parseDocument(body, study.id, head.kind, head.part);
      for (let bucket = 0; bucket < buckets; bucket++) known.add(`contents/${head.number}/${bucket}`);
    } catch {
      // A fault of the document, which stands elsewhere.
    }
  }
  return known;
}

// Rows as comma-separated values without formulas, or nothing for a document that has none.
const computed = (text) => /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text);
function csvOf(body) {
  try {
    const { model } = parseModel(new TextDecoder().decode(body));
    const spelled = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const plain = (text) => (computed(text) ? `'${text}` : text);
    return utf8([model.columns, ...model.rows].map((row) => `${row.map((text) => spelled(plain(text))).join(",")}\n`).join(""));
  } catch (error) {
    if (error instanceof Fault) return null;
    throw error;
  }
}
