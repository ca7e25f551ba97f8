"use strict";
(() => {
  const { pairs, confusions = [] } = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const PAGE = 40;

  const element = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  const list = get("confusion-list");
  const drawConfusions = () => {
    const words = get("confusion-text").value.trim();
    const chosen = confusions.filter(([right, wrong]) => !words || right.includes(words) || wrong.includes(words));
    get("confusion-count").textContent = `${chosen.length} of ${confusions.length}`;
    list.replaceChildren(...chosen.slice(0, 120).map(([right, wrong, operator, count]) => {
      const item = element("li", "", `${right} → ${wrong} ×${count}`);
      item.title = operator;
      return item;
    }));
  };
  if (list) {
    get("confusion-text").addEventListener("input", drawConfusions);
    drawConfusions();
  }

  // Edits count code points, and a string's own places count UTF-16 units.
  const picture = ([target, edits]) => {
    const box = element("div", "text");
    box.lang = "zh";
    const points = [...target];
    let done = 0;
    for (const [start, end, source, operator, kind] of edits) {
      box.append(points.slice(done, start).join(""));
      const right = points.slice(start, end).join("");
      if (right) box.append(element("del", "", right));
      const wrong = element("ins", "", source || "∅");
      wrong.title = `${operator}: ${kind}`;
      box.append(wrong);
      done = end;
    }
    box.append(points.slice(done).join(""));
    return box;
  };

  const card = (pair) => {
    const [, , operator, origin, verdict, distance, cosine] = pair;
    const box = element("article", "pair");
    const about = element("div", "about");
    about.append(element("b", "", verdict));
    const facts = [operator, origin].filter(Boolean);
    if (distance !== null) facts.push(`distance ${distance}`);
    if (cosine !== null) facts.push(`cosine ${cosine}`);
    for (const fact of facts) about.append(element("span", "", fact));
    box.append(about, picture(pair));
    return box;
  };

  const source = ([target, edits]) => {
    const points = [...target];
    for (const [start, end, text] of [...edits].reverse()) points.splice(start, end - start, text);
    return points.join("");
  };

  const FIELDS = Object.entries({ operator: 2, origin: 3, verdict: 4 });
  let shown = PAGE;
  const draw = () => {
    const words = get("pair-text").value.trim();
    const chosen = pairs.filter((pair) =>
      FIELDS.every(([name, at]) => !get("pair-" + name).value || pair[at] === get("pair-" + name).value) &&
      (!words || pair[0].includes(words) || source(pair).includes(words)));
    get("pair-list").replaceChildren(...chosen.slice(0, shown).map(card));
    get("pair-count").textContent = `${chosen.length} of ${pairs.length} shown on this page`;
    get("pair-more").hidden = chosen.length <= shown;
  };
  const again = () => { shown = PAGE; draw(); };
  for (const [name, at] of FIELDS) {
    const select = get("pair-" + name);
    const values = [...new Set(pairs.map((pair) => pair[at]))].filter(Boolean).sort();
    select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    select.addEventListener("change", again);
  }
  get("pair-text").addEventListener("input", again);
  get("pair-more").addEventListener("click", () => { shown += PAGE; draw(); });
  draw();
})();
