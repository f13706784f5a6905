// Runs the work of verify.html in node: a line of JSON comes in for each task, and one goes out. Bytes are hexadecimal.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

const page = readFileSync(process.argv[2], "utf8");
runInThisContext(/<script type="text\/plain" id="work">([\s\S]*?)<\/script>/.exec(page)[1]);
const { Fault, audit, sizes, tokensTogether, vectorVerdict } = globalThis.verifier;
const bytes = (text) => new Uint8Array(Buffer.from(text, "hex"));

const TASKS = {
  sizes(given) {
    Object.assign(sizes, given);
    return {};
  },
  async audit({ files }) {
    const read = async (name) => (Object.hasOwn(files, name) ? bytes(files[name]) : null);
    return audit({ names: Object.keys(files), read });
  },
  vectors({ file }) {
    const { kind, cases, shared } = JSON.parse(readFileSync(file, "utf8"));
    return { verdicts: cases.map(({ given }) => verdict(kind, given, shared)) };
  },
  together({ file }) {
    const { cases, shared } = JSON.parse(readFileSync(file, "utf8"));
    const first = cases[0].given;
    const some = cases.filter(({ given }) => ["key", "header", "packets"].every((name) => given[name] === first[name]));
    const verdicts = tokensTogether(some.map(({ given }) => given), shared);
    return { verdicts: some.map(({ name, holds }, at) => [name, holds, verdicts[at]]) };
  },
};

function verdict(kind, given, shared) {
  try {
    return { gives: vectorVerdict(kind, given, shared) };
  } catch (error) {
    return error instanceof Fault ? { fault: error.message } : { broken: String(error.stack) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { task, ...given } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await TASKS[task](given))}\n`);
}
