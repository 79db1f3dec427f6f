// Shortcuts, suggestions, filters and the answer to a manifest. The page is complete without it.
const find = (id) => document.getElementById(id);
const make = (tag, text, values = {}) => Object.assign(document.createElement(tag), { textContent: text, ...values });
const input = find("q");
const form = input.form;
const root = document.body.dataset.root;
const fields = document.querySelector(".tree");
const isTyping = (target) => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

addEventListener("keydown", (event) => {
  if (event.key === "/" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});

for (const pre of document.querySelectorAll("pre")) {
  const button = make("button", "Copy", { type: "button" });
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

// Home: kinds whose name or group has the text.
const kinds = document.querySelector(".bar[data-filter]");
if (kinds) {
  kinds.hidden = false;
  const [box, said] = kinds.children;
  box.addEventListener("input", () => {
    const text = box.value.trim().toLowerCase();
    let shown = 0;
    for (const section of document.querySelectorAll(".cards section")) {
      const isGroup = section.querySelector("h2 a").textContent.toLowerCase().includes(text);
      let own = 0;
      for (const item of section.querySelectorAll("li")) {
        item.hidden = !isGroup && !item.firstChild.textContent.toLowerCase().includes(text);
        own += !item.hidden;
      }
      section.hidden = !own;
      shown += own;
    }
    said.textContent = text ? `${shown} ${shown === 1 ? "kind" : "kinds"}` : "";
  });
}

if (fields) {
  const crumbs = find("crumbs");
  const kind = crumbs.firstElementChild;
  const typeOf = (field) => (field.querySelector(":scope > summary > i, :scope:not(details) > :is(i, a)") ?? field.previousElementSibling)?.textContent ?? "";
  const above = (field) => field.parentElement.closest("[id]:is(details, .tree div)");
  let at;

  // Fields that stand elsewhere on the page already are links to there, until somebody wants to see them.
  const fill = (field) => {
    const { same } = field.dataset;
    if (!same) return;
    delete field.dataset.same;
    field.querySelector("[id]").parentElement.remove();
    for (const each of find(same).querySelectorAll(":scope > :is(a, div, details)")) {
      const copy = each.cloneNode(true);
      for (const part of [copy, ...copy.querySelectorAll("[id]")]) {
        if (part.id) part.id = field.id + part.id.slice(same.length);
        part.removeAttribute("open");
      }
      field.append(copy);
    }
  };
  const fillAll = () => { for (let each; each = fields.querySelector("[data-same]");) fill(each); };
  fields.addEventListener("click", ({ target }) => { if (target.closest("summary")) fill(target.closest("details")); });
  fields.addEventListener("toggle", ({ target }) => { if (target.open) fill(target); }, true);

  // Where one is: the field that was asked for while it is in sight, else the one at the top.
  const show = (field) => {
    if (field === at) return;
    at = field;
    const path = [];
    for (let each = field; each; each = above(each)) {
      const list = typeOf(each).startsWith("[]") ? "[]" : "";
      const name = each.querySelector("code").textContent;
      path.unshift(" › ", make("a", name + list, { href: `#${encodeURIComponent(each.id)}` }));
    }
    crumbs.replaceChildren(kind, ...path);
    // Whole parts make room for the last ones, behind the kind.
    while (path.length > 2 && crumbs.scrollWidth > crumbs.clientWidth) {
      path.splice(0, 2);
      crumbs.replaceChildren(kind, " › …", ...path);
    }
  };
  let asked;
  const isSeen = (field) => { const { top, bottom } = field.getBoundingClientRect(); return bottom > 110 && top < innerHeight; };
  const follow = () => {
    if (asked && isSeen(asked)) return show(asked);
    asked = undefined;
    const { left, top } = fields.getBoundingClientRect();
    if (top > 120) return show(undefined);
    show(document.elementFromPoint(left + 30, 130)?.closest(".tree [id]") ?? at);
  };
  let waits = false;
  addEventListener("scroll", () => {
    if (!waits) requestAnimationFrame(() => { waits = false; follow(); });
    waits = true;
  }, { passive: true });
  addEventListener("resize", () => { const field = at; at = null; show(field); });
  for (const type of ["focusin", "click"]) {
    fields.addEventListener(type, ({ target }) => {
      const field = target.closest(".tree [id]");
      if (field) { asked = field; show(field); }
    });
  }

  // A link to a field opens what is above it by itself; here the field too. One that is not there is said.
  const unknown = find("unknown");
  const openTarget = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const link = find(name);
    let target = link;
    while (target?.matches("[data-same] a")) { fill(target.closest("[data-same]")); target = find(name); }
    if (target !== link) location.replace(location.href);
    unknown.hidden = !name || Boolean(target);
    if (target?.closest(".tree")) {
      if (target.tagName === "DETAILS") target.open = true;
      asked = target;
      show(target);
    } else if (!unknown.hidden) {
      const names = name.replaceAll("[]", "").split(".");
      let near;
      while (names.length && !near) near = names.pop() && find(names.join("."));
      unknown.replaceChildren(`${kind.textContent} has no field ${name}. `);
      if (near) unknown.append("The closest is ", make("a", near.id, { href: `#${encodeURIComponent(near.id)}` }), ".");
      unknown.scrollIntoView({ block: "center" });
    }
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  // The tree, as trees go: up and down between fields, right opens, left closes or goes up.
  fields.addEventListener("keydown", (event) => {
    const summary = event.target.closest("summary");
    if (!summary) return;
    const details = summary.parentElement;
    const shown = () => [...fields.querySelectorAll("summary")].filter((each) => each.checkVisibility());
    const step = (by) => { const all = shown(); all[all.indexOf(summary) + by]?.focus(); };
    switch (event.key) {
      case "ArrowDown": step(1); break;
      case "ArrowUp": step(-1); break;
      case "ArrowRight": if (details.open) step(1); else { fill(details); details.open = true; } break;
      case "ArrowLeft":
        if (details.open) details.open = false;
        else above(details)?.querySelector("summary").focus();
        break;
      default: return;
    }
    event.preventDefault();
  });

  const expand = find("expand");
  const filter = find("filter");
  expand.hidden = filter.hidden = false;
  expand.addEventListener("click", () => {
    const isOpen = expand.textContent === "Expand all";
    fillAll();
    for (const each of fields.querySelectorAll("details")) each.open = isOpen;
    expand.textContent = isOpen ? "Collapse all" : "Expand all";
  });
  let before;
  filter.addEventListener("input", () => {
    const text = filter.value.trim().toLowerCase();
    fillAll();
    const all = [...fields.querySelectorAll("[id]")];
    before ??= new Set(all.filter((each) => each.open));
    const kept = new Set();
    for (const each of text ? all : []) {
      const name = text.includes(".") ? each.id : each.id.slice(each.id.lastIndexOf(".") + 1);
      if (name.toLowerCase().includes(text)) for (let up = each; up && !kept.has(up); up = above(up)) kept.add(up);
    }
    for (const each of all) {
      each.hidden = Boolean(text) && !kept.has(each);
      if (each.previousElementSibling?.tagName === "A") each.previousElementSibling.hidden = each.hidden;
      if (each.tagName === "DETAILS") each.open = text ? kept.has(each) && each.classList.contains("k") : before.has(each);
    }
    if (!text) before = undefined;
  });
}

// Manifests: each is sent by itself, as the service takes one at a time; lines are those of the whole text.
const judged = find("validate");
if (judged) {
  judged.hidden = false;
  const text = judged.querySelector("textarea");
  const verdict = find("verdict");
  const ask = async (body) => {
    const type = body.trimStart().startsWith("{") ? "application/json" : "application/yaml";
    const answer = await fetch(`${root}../validate?report&fieldValidation=Strict`, { method: "POST", body, headers: { "Content-Type": type } });
    const said = await answer.json();
    if (answer.status === 429 || answer.status > 499) throw said.message;
    return answer.ok ? said : { valid: false, violations: [{ severity: "error", line: null, message: said.message }] };
  };
  judged.addEventListener("submit", async (event) => {
    event.preventDefault();
    verdict.textContent = "Checking…";
    const lines = text.value.trimEnd().split("\n");
    const marks = new Map();
    let objects = 0, errors = 0, notes = 0;
    try {
      for (let from = 0, to; from < lines.length; from = to + 1) {
        for (to = from; to < lines.length && !/^---(\s|$)/.test(lines[to]); to++);
        const part = lines.slice(from, to);
        if (!part.some((line) => /^\s*[^#\s]/.test(line))) continue;
        objects++;
        const first = part.findIndex((line) => /^\s*[^#\s]/.test(line));
        for (const each of (await ask(part.join("\n"))).violations) {
          if (each.severity === "error") errors++; else notes++;
          const line = from + (each.line ?? first + 1);
          marks.set(line, [...(marks.get(line) ?? []), each.hint ? `${each.message} (did you mean "${each.hint}"?)` : each.message]);
        }
      }
    } catch (error) {
      verdict.textContent = `Not checked: ${error.message ?? error}. Try again.`;
      return;
    }
    const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
    const sum = !objects ? "Nothing to check." : errors || notes ? `${count(objects, "object")}: ${count(errors, "error")}${notes ? `, ${count(notes, "warning")}` : ""}.` : `${count(objects, "object")}: valid.`;
    const list = make("ol", "", { className: "lines" });
    lines.forEach((line, number) => {
      const item = make("li", line);
      for (const message of marks.get(number + 1) ?? []) { item.className = "bad"; item.id = `line-${number + 1}`; item.append(make("p", message)); }
      list.append(item);
    });
    // The marked text takes the place of the one that was typed, which opens again.
    judged.querySelector("details").open = !objects;
    const places = make("p", "");
    for (const line of [...marks.keys()].sort((a, b) => a - b)) places.append(places.firstChild ? ", " : "Lines: ", make("a", line, { href: `#line-${line}` }));
    verdict.replaceChildren(make("p", sum, { className: errors ? "box bad" : "box ok" }), ...(marks.size ? [places] : []), ...(objects ? [list] : []));
  });
}

// Suggestions: a list below the box, in the manner of the ARIA combobox.
const list = make("ul", "", { id: "suggestions", hidden: true });
list.setAttribute("role", "listbox");
list.setAttribute("aria-label", "Suggestions");
form.append(list);
for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", list.id], ["aria-autocomplete", "list"]]) input.setAttribute(name, value);

let chosen = -1;
let number = 0;
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
  const mine = ++number;
  if (words.length < 2) return close();
  let rows = [];
  try {
    const answer = await fetch(`${root}../search?limit=8&q=${encodeURIComponent(words)}`);
    if (answer.ok) rows = (await answer.json()).rows;
  } catch { /* the form still works */ }
  if (mine !== number || document.activeElement !== input) return;
  if (!rows.length) return close();
  list.replaceChildren(...rows.map((row, at) => {
    const item = make("li", "", { id: `suggestion-${at}` });
    const name = make("span", row.kind + (row.path ? `.${row.path}` : ""));
    item.append(name, " ", make("small", row.group ? `${row.group}/${row.version}` : row.version));
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
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
