// Builds verify.html: `npm ci && npm run build` in this folder. All code is bundled into the one file.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

async function bundled(entry) {
  const options = { bundle: true, charset: "ascii", format: "iife", legalComments: "inline", minify: true, target: "es2022", write: false };
  const made = await build({ entryPoints: [`src/${entry}`], ...options });
  return made.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

const page = readFileSync("src/page.html", "utf8");
const [work, shown] = [await bundled("worker.js"), await bundled("page.js")];
const put = (text, mark, content) => text.split(mark).join(content);
writeFileSync("verify.html", put(put(page, "/*WORK*/", work.trim()), "/*PAGE*/", shown.trim()));
