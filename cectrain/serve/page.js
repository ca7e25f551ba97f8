"use strict";
(() => {
  const get = (id) => document.getElementById(id);
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
    choice.setAttribute("aria-label", `${edit.source || "nothing"}, confidence ${percent(edit.confidence)}`);
    choice.append(new Option(edit.target || "(delete)", edit.target));
    for (const other of edit.alternatives) {
      choice.append(new Option(`${other.target || "(delete)"} ${percent(other.confidence)}`, other.target));
    }
    choice.append(new Option(`keep ${edit.source || "nothing"}`, edit.source));
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
      plain(points.slice(done, edit.start).join(""));
      edited(edit);
      done = edit.end;
    }
    plain(points.slice(done).join(""));
  };

  const draw = () => {
    const answer = get("answer");
    answer.replaceChildren();
    corrections.forEach((correction, line) => {
      if (line) answer.append("\n");
      walk(correction, (text) => answer.append(text), (edit) => answer.append(control(edit)));
    });
    get("result").hidden = false;
  };

  const text = () => corrections.map((correction) => {
    let line = "";
    walk(correction, (part) => { line += part; }, (edit) => { line += edit.chosen; });
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
    say("Correcting …");
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
      say(count === 1 ? "1 correction" : `${count} corrections`);
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
    say("Copied");
  });
})();
