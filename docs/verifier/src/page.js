// The page: takes a folder, hands it to a worker, and shows what came out. Text of a study is set as text, never as HTML.
const at = (id) => document.getElementById(id);
const made = (tag, text, parent) => {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
};

const source = at("work").textContent;
let worker = null;

function check(files) {
  const root = rootOf(files.map(([path]) => path));
  if (root === null) return say("This folder has no file named “heads”: choose the folder that an export wrote.");
  const own = files.filter(([path]) => path.startsWith(root)).map(([path, file]) => [path.slice(root.length), file]);
  worker?.terminate();
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onmessage = ({ data }) => {
    if (data.step) return progress(data.step);
    if (data.broken) return say(`This page failed, and checked nothing: ${data.broken}`);
    show(data.result);
  };
  worker.onerror = (event) => say(`This page failed, and checked nothing: ${event.message}`);
  say("Reading …");
  delete at("state").dataset.verdict;
  at("result").replaceChildren();
  worker.postMessage({ files: own });
}

// The folder in which `heads` stands, the highest if there are several.
function rootOf(paths) {
  const roots = paths.filter((path) => path === "heads" || path.endsWith("/heads")).map((path) => path.slice(0, -"heads".length));
  return roots.sort((a, b) => a.length - b.length)[0] ?? null;
}

function say(text) {
  at("state").textContent = text;
  at("bar").hidden = true;
}

function progress({ what, done, of }) {
  at("state").textContent = `${done} of ${of} ${what} …`;
  Object.assign(at("bar"), { hidden: false, value: done, max: Math.max(of, 1) });
}

const SECTIONS = [
  ["faults", "This does not hold", (one) => `${one.document}: ${one.why}`],
  ["unchecked", "This was not checked", (one) => `${one.document}: ${one.why}`],
  ["holds", "This holds", (one) => one],
  ["nobody", "This nobody can check from what is published", (one) => one],
];

function show(result) {
  compareLink(result);
  say(verdict(result));
  at("state").dataset.verdict = result.faults.length ? "faults" : "none";
  const place = at("result");
  place.replaceChildren();
  if (result.words) made("p", `Study “${result.title}”: ${result.enrolled} enrolled, ${result.packets} packets.`, place);
  if (result.words) words(result, place);
  for (const [key, title, text] of SECTIONS) {
    if (!result[key].length) continue;
    made("h2", title, place);
    const list = made("ul", "", place);
    list.className = key;
    result[key].forEach((one) => made("li", text(one), list));
  }
}

function verdict({ faults, unchecked }) {
  if (faults.length) return `${faults.length} ${faults.length === 1 ? "thing does" : "things do"} not hold.`;
  return `No fault in what was checked; ${unchecked.length} ${unchecked.length === 1 ? "thing was" : "things were"} not checked.`;
}

function words(result, place) {
  made("p", "Compare these words with a public place: another study of the same name fits together as well.", place);
  made("code", result.words, place);
  const more = made("details", "", place);
  made("summary", "Words of every document, to compare with those that another member was told", more);
  result.prints.forEach(({ number, document: of, words: told }) => made("p", `${number} ${of}: ${told}`, more));
}

// An invite link names the study and the key; a key alone is 64 hexadecimal digits.
function compareLink({ id, key, faults, unchecked, holds }) {
  const text = at("key").value.trim();
  const fault = (why) => faults.unshift({ document: "invite", why });
  if (!text) return unchecked.unshift({ document: "key", why: "it was taken from the folder; paste your invite link above to check it" });
  const link = /^anonml:\/\/[^/?#]+\/([0-9a-f]{64})\?key=([0-9a-f]{64})(&code=[^&]*)?$/.exec(text);
  const own = link ? link[2] : /^[0-9a-f]{64}$/.exec(text)?.[0];
  if (!own) return fault("the text above is neither an invite link nor a key");
  if (own !== key) return fault("the study was published under another key than the one above");
  if (link && link[1] !== id) return fault("this is another study than that of the invite link");
  return holds.unshift(link ? "it is the study of the invite link, under its key" : "the study's key is the one above");
}

at("picker").addEventListener("change", (event) => check([...event.target.files].map((file) => [file.webkitRelativePath || file.name, file])));
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", async (event) => {
  event.preventDefault();
  try {
    check((await Promise.all([...event.dataTransfer.items].map(dropped))).flat());
  } catch {
    say("This browser does not let a page from disk read a folder that was dropped: choose the folder instead.");
  }
});

// A handle where the browser has them: in a page from disk Chromium lets nothing else be read.
async function dropped(item) {
  if (item.kind !== "file") return [];
  if (item.getAsFileSystemHandle) return filesOf(await item.getAsFileSystemHandle(), "");
  return filesIn(item.webkitGetAsEntry(), "");
}

async function filesOf(handle, path) {
  if (handle.kind === "file") return [[path + handle.name, await handle.getFile()]];
  const found = [];
  for await (const one of handle.values()) found.push(...(await filesOf(one, `${path}${handle.name}/`)));
  return found;
}

async function filesIn(entry, path) {
  if (entry.isFile) return [[path + entry.name, await new Promise((take, fail) => entry.file(take, fail))]];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((take, fail) => reader.readEntries(take, fail)); // at most 100 at once
    if (!some.length) break;
    for (const one of some) found.push(...(await filesIn(one, `${path}${entry.name}/`)));
  }
  return found;
}
