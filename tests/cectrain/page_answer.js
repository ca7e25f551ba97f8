// Prints what the page of `cectrain serve` shows for an answer: its status, and the dotted spans.
// Arguments: page.js, page.words.json, the answer. The elements have what page.js uses of them.
// With the name of a file and words as well, prints where the page sends the file.
"use strict";
const fs = require("fs");
const [script, words, answer, file, names] = process.argv.slice(2);

class Element {
  children = [];
  own = "";
  className = "";
  classList = { toggle() {} };
  listeners = {};
  append(...nodes) { this.children.push(...nodes); }
  replaceChildren() { this.children = []; }
  addEventListener(name, act) { this.listeners[name] = act; }
  setAttribute() {}
  get textContent() { return this.own + this.children.map((node) => node.textContent ?? node).join(""); }
  set textContent(text) { this.own = text; }
  querySelectorAll(name) {
    const inner = this.children.filter((node) => node instanceof Element);
    return inner.flatMap((node) => [...(`.${node.className}` === name ? [node] : []), ...node.querySelectorAll(name)]);
  }
}

const elements = {};
globalThis.Option = Element;
globalThis.document = {
  getElementById: (id) => (elements[id] ??= new Element()),
  createElement: () => new Element(),
};
globalThis.localStorage = { getItem: () => null, setItem() {} };
globalThis.fetch = async () => ({ ok: true, json: async () => JSON.parse(answer) });
document.getElementById("data").textContent = JSON.stringify(JSON.parse(fs.readFileSync(words)).en);
document.getElementById("text").value = "";
eval(fs.readFileSync(script, "utf8"));
if (file) {
  globalThis.fetch = async (address) => console.log(address);
  elements.names.value = names;
  elements.least.value = "85";
  elements.file.files = [{ name: file }];
  elements.file.listeners.change();
  process.exit();
}
elements.form.listeners.submit({ preventDefault() {} });
setTimeout(() => {
  const dotted = elements.answer.querySelectorAll(".unread").map((node) => node.textContent);
  console.log(JSON.stringify([elements.status.textContent, dotted]));
}, 50);
