"use strict";
(() => {
  const cases = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("cases");
  const count = document.getElementById("case-count");
  const more = document.getElementById("case-more");
  const fields = ["benchmark", "system", "judgement", "category", "status"];
  const PAGE = 40;
  // A character with the marks behind it: no line may begin with one of those.
  const UNBROKEN = /[^][，。！？；：、）》」』】〉”’…—]*/gu;
  let shown = PAGE;

  const element = (tag, name, text) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const line = (kind, text) =>
    text ? element("span", kind, text) : element("span", kind + " none", "∅");

  const stack = ([source, prediction, reference]) => {
    const box = element("span", "stack");
    box.append(line("src", source));
    box.append(line("prd " + (prediction === reference ? "ok" : "bad"), prediction));
    box.append(line("ref", reference));
    box.title = `source: ${source || "nothing"}\nprediction: ${prediction || "nothing"}\nreference: ${reference || "nothing"}`;
    return box;
  };

  const picture = (pieces) => {
    const row = element("div", "aligned");
    row.lang = "zh";
    for (const piece of pieces) {
      if (typeof piece !== "string") { row.append(stack(piece)); continue; }
      for (const [part] of piece.matchAll(UNBROKEN)) row.append(element("span", "same", part));
    }
    return row;
  };

  const card = (c) => {
    const box = element("article", "case");
    const about = element("div", "about");
    about.append(element("b", "", c.judgement));
    for (const text of [`category ${c.category}`, `by ${c.system}`, `${c.benchmark}, ${c.id}`]) {
      about.append(element("span", "", text));
    }
    if (c.status !== "ok") about.append(element("span", "", "answer: " + c.status));
    box.append(about, picture(c.pieces));
    return box;
  };

  const text = (c, at) => c.pieces.map((p) => (typeof p === "string" ? p : p[at])).join("");

  const wanted = () => {
    const chosen = Object.fromEntries(
      fields.map((f) => [f, document.getElementById("filter-" + f).value]));
    const words = document.getElementById("filter-text").value.trim();
    return cases.filter((c) =>
      fields.every((f) => !chosen[f] || c[f] === chosen[f]) &&
      (!words || [0, 1, 2].some((at) => text(c, at).includes(words)) || c.id === words));
  };

  const draw = () => {
    const found = wanted();
    list.replaceChildren(...found.slice(0, shown).map(card));
    count.textContent = `${found.length} of ${cases.length} sentences`;
    more.hidden = found.length <= shown;
  };

  const again = () => { shown = PAGE; draw(); };
  for (const f of fields) {
    const select = document.getElementById("filter-" + f);
    const values = [...new Set(cases.map((c) => c[f]))].sort();
    select.append(new Option("all", ""), ...values.map((v) => new Option(v, v)));
    select.addEventListener("change", again);
  }
  document.getElementById("filter-text").addEventListener("input", again);
  more.addEventListener("click", () => { shown += PAGE; draw(); });
  draw();
})();
