// Shortcuts and suggestions. The page is complete without it.
const input = document.getElementById("q");
const form = input.form;
const root = document.body.dataset.root;

const isTyping = (target) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

addEventListener("keydown", (event) => {
  if (event.key === "/" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});

// The tree, as trees go: up and down between fields, right opens, left closes or goes up.
document.querySelector(".tree")?.addEventListener("keydown", (event) => {
  const summary = event.target.closest("summary");
  if (!summary) return;
  const details = summary.parentElement;
  const shown = () => [...document.querySelectorAll(".tree summary")].filter((each) => each.checkVisibility());
  const step = (by) => { const all = shown(); all[all.indexOf(summary) + by]?.focus(); };
  switch (event.key) {
    case "ArrowDown": step(1); break;
    case "ArrowUp": step(-1); break;
    case "ArrowRight": if (details.open) step(1); else details.open = true; break;
    case "ArrowLeft":
      if (details.open) details.open = false;
      else details.parentElement.closest("details")?.querySelector("summary").focus();
      break;
    default: return;
  }
  event.preventDefault();
});

// A field that is opened says how it is linked to.
document.querySelector(".tree")?.addEventListener("toggle", ({ target }) => {
  if (!target.open || target.querySelector(":scope > .l")) return;
  const line = document.createElement("p");
  const link = document.createElement("a");
  line.className = "l";
  link.href = `#${encodeURIComponent(target.id)}`;
  link.textContent = "Link to this field";
  line.append(link);
  target.insertBefore(line, target.querySelector(":scope > details"));
}, true);

// A link to a field opens what is above it by itself; here the field too.
const openTarget = () => { const target = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (target?.tagName === "DETAILS") target.open = true; };
addEventListener("hashchange", openTarget);
openTarget();

for (const pre of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.querySelector("code").textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  pre.append(button);
}

// Suggestions: a list below the box, in the manner of the ARIA combobox.
const list = document.createElement("ul");
list.id = "suggestions";
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Suggestions");
list.hidden = true;
form.append(list);
for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", list.id], ["aria-autocomplete", "list"]]) input.setAttribute(name, value);

let chosen = -1;
let asked = 0;
let timer;

const close = () => {
  list.hidden = true;
  chosen = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
};

const choose = (index) => {
  chosen = (index + list.children.length) % list.children.length;
  [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
  input.setAttribute("aria-activedescendant", list.children[chosen].id);
  list.children[chosen].scrollIntoView({ block: "nearest" });
};

const suggest = async () => {
  const words = input.value.trim();
  const mine = ++asked;
  if (words.length < 2) return close();
  let rows = [];
  try {
    const answer = await fetch(`${root}../search?limit=8&q=${encodeURIComponent(words)}`);
    if (answer.ok) rows = (await answer.json()).rows;
  } catch { /* the form still works */ }
  if (mine !== asked || document.activeElement !== input) return;
  if (!rows.length) return close();
  list.replaceChildren(...rows.map((row, at) => {
    const item = document.createElement("li");
    item.id = `suggestion-${at}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.textContent = row.kind + (row.path ? `.${row.path}` : "");
    item.dataset.href = `${root}kind/${row.document}/${encodeURIComponent(row.kind)}${row.path ? `#${encodeURIComponent(row.path)}` : ""}`;
    return item;
  }));
  list.hidden = false;
  chosen = -1;
  input.setAttribute("aria-expanded", "true");
};

input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(suggest, 120); });
input.addEventListener("blur", () => setTimeout(close, 150));
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return close();
  if (list.hidden) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? -1 : chosen - 1);
  } else if (event.key === "Enter" && chosen >= 0) {
    event.preventDefault();
    location.href = list.children[chosen].dataset.href;
  }
});
list.addEventListener("mousedown", (event) => {
  const item = event.target.closest("[data-href]");
  if (item) { event.preventDefault(); location.href = item.dataset.href; }
});
