"use strict";
// Shows the page in Chinese where the browser prefers it, or the address ends in #zh; #en keeps English.
(() => {
  const chinese = location.hash ? location.hash === "#zh" : navigator.language.startsWith("zh");
  const other = document.createElement("button");
  other.type = "button";
  other.className = "language";
  other.lang = chinese ? "en" : "zh";
  other.textContent = chinese ? "English" : "中文";
  other.addEventListener("click", () => {
    location.hash = chinese ? "en" : "zh";
    location.reload();
  });
  document.querySelector("main").prepend(other);
  if (!chinese) return;
  document.documentElement.lang = "zh-CN";

  // Each English text with {} for what differs, and the Chinese one with {1}, {2}, … in its order.
  const words = Object.entries(JSON.parse(document.getElementById("words").textContent));
  const plain = new Map(words.filter(([text]) => !text.includes("{}")));
  const literal = (text) => text.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  const patterns = words.filter(([text]) => text.includes("{}"))
    .sort(([one], [other]) => other.length - one.length)
    .map(([text, answer]) => [new RegExp(`^${text.split("{}").map(literal).join("(.+?)")}$`), answer]);
  const translate = (text) => {
    const written = text.trim();
    if (plain.has(written)) return text.replace(written, () => plain.get(written));
    for (const [pattern, answer] of patterns) {
      const parts = written.match(pattern);
      if (parts) return text.replace(written, () => answer.replace(/\{(\d)\}/g, (_, number) => parts[number]));
    }
    return text;
  };

  const skipped = "script, style, code, [lang='zh'], [lang='en']";
  const walk = (root) => {
    const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = nodes.currentNode; node; node = nodes.nextNode()) {
      if (node.nodeType !== Node.TEXT_NODE || node.parentElement.closest(skipped)) continue;
      const text = translate(node.data);
      if (text !== node.data) node.data = text;
    }
  };
  walk(document.documentElement);
  new MutationObserver((changes) => {
    for (const change of changes) change.addedNodes.forEach(walk);
  }).observe(document.body, { childList: true, subtree: true });
})();
