// Run the search of a built site outside of a browser: node site_search.js SITE QUERY…
// Prints a JSON list for each query: the locations of the pages that its own worker finds, best first.
const fs = require("fs");
const path = require("path");

const [site, ...queries] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.js$/.test(name));
const read = (name) => fs.readFileSync(path.join(folder, name), "utf8");
const listeners = [];
const answers = [];
let wake = () => {};

globalThis.self = globalThis;
globalThis.addEventListener = (kind, listener) => kind === "message" && listeners.push(listener);
globalThis.postMessage = (message) => wake(answers.push(message));
globalThis.importScripts = (...names) => names.forEach((name) => (0, eval)(read(name)));
globalThis.location = { href: `file://${folder}/${worker}` };
(0, eval)(read(worker));

async function ask(type, data) {
  const before = answers.length;
  listeners.forEach((listener) => listener({ data: { type, data } }));
  while (answers.length === before) await new Promise((resolve) => (wake = resolve));
  return answers[before].data;
}

(async () => {
  const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json"), "utf8"));
  await ask(0, { ...index, options: { suggest: false } });
  for (const query of queries) {
    const found = await ask(2, query);
    console.log(JSON.stringify(found.items.map((group) => group[0].location)));
  }
})();
