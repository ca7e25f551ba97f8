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

  // Make the edits with at least this confidence; more than 1 makes none.
  const decide = (least) => {
    for (const edit of corrections.flatMap((correction) => correction.edits)) {
      const made = edit.confidence >= least;
      edit.choice = made ? 0 : edit.alternatives.length + 1;
      edit.chosen = made ? edit.target : edit.source;
    }
    draw();
  };
  const slide = () => {
    get("percent").textContent = `${get("least").value} %`;
    decide(get("least").value / 100);
  };

  // Words that are not to be changed, which the browser remembers.
  const names = () => get("names").value.split(/[\s,，、;；]+/).filter(Boolean);
  const remember = () => localStorage.setItem("names", get("names").value);

  const correct = async () => {
    say(words.working);
    get("go").disabled = true;
    try {
      const response = await fetch("correct", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ texts: get("text").value.split(/\r?\n/), protect: names() }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      corrections = answer.corrections;
      slide();
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

  // A file comes back corrected, a Word file with tracked changes.
  const correctFile = async (file) => {
    say(words.working);
    try {
      const wishes = [["name", file.name], ["confidence", get("least").value / 100], ...names().map((name) => ["protect", name])];
      const response = await fetch(`file?${new URLSearchParams(wishes)}`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream" },
        body: file,
      });
      if (!response.ok) throw new Error((await response.json()).error);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await response.blob());
      link.download = file.name.replace(/(\.[^.]*)?$/, "-corrected$1");
      link.click();
      say(say_of("saved", link.download));
    } catch (error) {
      say(error.message, true);
    } finally {
      get("file").value = "";
    }
  };

  get("form").addEventListener("submit", (event) => { event.preventDefault(); correct(); });
  get("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); correct(); }
  });
  get("accept").addEventListener("click", () => decide(0));
  get("reject").addEventListener("click", () => decide(2));
  get("least").addEventListener("input", slide);
  get("names").addEventListener("change", remember);
  get("names").value = localStorage.getItem("names") || "";
  get("protect").addEventListener("click", () => {
    const word = getSelection().toString().trim();
    if (!word) return say(words.select, true);
    get("names").value = [...names(), word].join(" ");
    remember();
    return correct();
  });
  get("file").addEventListener("change", () => correctFile(get("file").files[0]));
  get("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    say(words.copied);
  });
})();
