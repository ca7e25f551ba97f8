"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const words = JSON.parse(get("data").textContent);
  const say_of = (name, ...parts) => parts.reduce((text, part) => text.replace("{}", part), words[name]);
  // Reasons for which a stretch was not looked at, unlike an edit that was refused.
  const UNREAD = ["unreadable", "unfamiliar", "too_long"];
  let corrections = [];

  const element = (tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const percent = (share) => `${Math.round(100 * share)} %`;
  const say = (text, error) => {
    get("status").textContent = text;
    get("status").className = error ? "error" : "";
  };

  // One edit: what was written, and a choice of what stands in its place.
  const control = (edit) => {
    const box = element("span", "edit");
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", say_of("confidence", edit.source || words.nothing, percent(edit.confidence)));
    choice.append(new Option(edit.target || words.delete, edit.target));
    for (const other of edit.alternatives) {
      choice.append(new Option(`${other.target || words.delete} ${percent(other.confidence)}`, other.target));
    }
    choice.append(new Option(say_of("keep", edit.source || words.nothing), edit.source));
    choice.selectedIndex = edit.choice;
    const mark = () => box.classList.toggle("rejected", choice.selectedIndex === choice.length - 1);
    choice.addEventListener("change", () => {
      edit.choice = choice.selectedIndex;
      edit.chosen = choice.value;
      mark();
    });
    mark();
    if (edit.source) box.append(element("del", "", edit.source));
    box.append(choice, element("small", "", percent(edit.confidence)));
    return box;
  };

  // Offsets count code points, and a string's own places count UTF-16 units.
  const walk = (correction, plain, edited) => {
    const points = [...correction.source];
    let done = 0;
    for (const edit of correction.edits) {
      plain(done, edit.start, points);
      edited(edit);
      done = edit.end;
    }
    plain(done, points.length, points);
  };

  // Text as written, with what was not looked at marked; such spans may lie within each other.
  const written = (correction, start, end, points) => {
    const parts = [];
    let done = start;
    for (const kept of correction.kept) {
      const from = Math.max(kept.start, done), to = Math.min(kept.end, end);
      if (!UNREAD.includes(kept.reason) || from >= to) continue;
      parts.push(points.slice(done, from).join(""));
      parts.push(element("span", "unread", points.slice(from, to).join("")));
      done = to;
    }
    return [...parts, points.slice(done, end).join("")];
  };

  const draw = () => {
    const answer = get("answer");
    answer.replaceChildren();
    corrections.forEach((correction, line) => {
      if (line) answer.append("\n");
      walk(
        correction,
        (start, end, points) => answer.append(...written(correction, start, end, points)),
        (edit) => answer.append(control(edit)),
      );
    });
    get("result").hidden = false;
  };

  const text = () => corrections.map((correction) => {
    let line = "";
    walk(
      correction,
      (start, end, points) => { line += points.slice(start, end).join(""); },
      (edit) => { line += edit.chosen; },
    );
    return line;
  }).join("\n");

  const decide = (keep) => {
    for (const edit of corrections.flatMap((correction) => correction.edits)) {
      edit.choice = keep ? edit.alternatives.length + 1 : 0;
      edit.chosen = keep ? edit.source : edit.target;
    }
    draw();
  };

  const correct = async () => {
    say(words.working);
    get("go").disabled = true;
    try {
      const response = await fetch("correct", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ texts: get("text").value.split(/\r?\n/) }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      corrections = answer.corrections;
      decide(false);
      const count = corrections.reduce((sum, correction) => sum + correction.edits.length, 0);
      const unread = get("answer").querySelectorAll(".unread");
      const told = [count === 1 ? words.one : say_of("many", count)];
      const length = [...unread].reduce((sum, node) => sum + [...node.textContent].length, 0);
      if (length) told.push(say_of("unread", length));
      if (corrections.some(({ kept }) => kept.some(({ reason }) => reason === "unfamiliar"))) {
        told.push(words.script);
      }
      say(told.join("; "));
    } catch (error) {
      say(error.message, true);
    } finally {
      get("go").disabled = false;
    }
  };

  get("form").addEventListener("submit", (event) => { event.preventDefault(); correct(); });
  get("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); correct(); }
  });
  get("accept").addEventListener("click", () => decide(false));
  get("reject").addEventListener("click", () => decide(true));
  get("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    say(words.copied);
  });
})();
