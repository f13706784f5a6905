// The work, apart from the page: a worker in a browser. A test runs the same text, and calls `verifier` itself.
import { audit } from "./audit.js";
import { Fault } from "./bytes.js";
import { sizes } from "./chain.js";
import { tokensTogether, vectorVerdict } from "./vectors.js";

// A folder of files by name, read one at a time.
export function folderOf(files) {
  const read = async (name) => (files.has(name) ? new Uint8Array(await files.get(name).arrayBuffer()) : null);
  return { names: [...files.keys()], read };
}

globalThis.verifier = { Fault, audit, sizes, tokensTogether, vectorVerdict };

globalThis.onmessage = async ({ data }) => {
  try {
    const result = await audit(folderOf(new Map(data.files)), (step) => globalThis.postMessage({ step }));
    globalThis.postMessage({ result });
  } catch (error) {
    globalThis.postMessage({ broken: String(error) });
  }
};
