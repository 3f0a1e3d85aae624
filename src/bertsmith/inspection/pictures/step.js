// One step of attention, stage by stage: Next and Back (or the arrow keys) walk from the input vector to the sum.
"use strict";

bertsmith.pictures.step = (host, data, options) => {
  const { make } = bertsmith;
  const readout = make("p", { class: "readout card cells-readout" });
  const body = make("div", {});
  const told = make("div", { "aria-live": "polite" });
  const stages = bertsmith.stepStages(data);
  let at = Math.min(Math.max((options || {}).stage || 0, 0), stages.length - 1);

  const go = (to) => {
    at = Math.min(Math.max(to, 0), stages.length - 1);
    back.disabled = at === 0;
    next.disabled = at === stages.length - 1;
    chips.forEach((chip, i) => chip.setAttribute("aria-current", i === at ? "step" : "false"));
    told.replaceChildren(
      make("h2", {}, `${at + 1}. ${stages[at].name}`), make("p", {}, stages[at].says), make("p", { class: "formula" }, stages[at].formula));
    readout.textContent = "Point at a cell or a row to read its numbers.";
    body.replaceChildren(bertsmith.drawStep(data, at, (text) => { readout.textContent = text; }));
  };
  const back = make("button", { type: "button", onclick: () => go(at - 1) }, "← Back");
  const next = make("button", { type: "button", onclick: () => go(at + 1) }, "Next →");
  const chips = stages.map((stage, i) =>
    make("button", { type: "button", class: "step-chip", title: stage.name, "aria-label": `stage ${i + 1}: ${stage.name}`, onclick: () => go(i) }, `${i + 1}`));
  const notes = [data.left_out && `${data.left_out}.`, ...data.notes, data.causal && "Read as GPT reads: a word sees only itself and those before it.",
    data.window && `A local layer: a token sees ${data.window} neighbours to each side.`].filter(Boolean);

  host.append(
    make("h1", {}, bertsmith.visible(data.title)),
    make("p", { class: "quiet" }, `layer ${data.layer} of ${data.layers}, head ${data.head} of ${data.heads}, counted from 0; ${data.size} numbers a vector`),
    make("div", { class: "bar" }, back, next, make("div", { class: "step-chips" }, chips)),
    told, body, readout,
    make("ul", { class: "quiet" }, notes.map((note) => make("li", {}, bertsmith.visible(note)))),
    bertsmith.listStep(data));
  host.tabIndex = -1;
  host.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || event.target.closest("input, select, textarea, summary")) return;
    event.preventDefault();
    go(at + by);
    (by > 0 && !next.disabled ? next : back.disabled ? next : back).focus();
  });
  go(at);
};

// What is said at each stage. `shows` are the columns that a narrow screen keeps.
bertsmith.stepStages = (data) => {
  const name = bertsmith.visible(data.name), [divisor] = data.by.match(/\d+/), root = Math.sqrt(divisor).toFixed(3);
  const turned = data.turned_q ? " Rotary positions then turn it by an angle that grows with its place in the row." : "";
  return [
    { name: "The input", says: `The layer reads “${name}” as a vector x of ${data.width} numbers; its length is ${data.norm.toFixed(3)}.`, formula: `x: ${data.width} numbers` },
    { name: "The query", says: `A matrix makes of x what “${name}” looks for in the other words: the query.${turned}`, formula: "q = Wq x + b" },
    { name: "The keys", says: `Another matrix makes of each word what it offers: its key.${data.turned_k ? " Keys are turned by their own places." : ""}`, formula: "k = Wk x + b" },
    { name: "Query times key", says: "The query is multiplied with each key, number by number, and summed: the more alike they point, the larger.", formula: "q · k = q₁k₁ + q₂k₂ + …" },
    { name: "Scaled", says: `Sums of ${data.size} products are large, so they are divided by √${divisor} = ${root}; else softmax would take the largest alone.${data.by === `√${divisor}` ? "" : " Then the distance between the two words adds to them."}`, formula: `q · k ÷ ${data.by}` },
    { name: "Softmax", says: "The scores become shares that sum to 1; a word that must not be seen gets nothing.", formula: "e to the score, divided by the sum of all of these" },
    { name: "The values", says: "A third matrix makes of each word what it has to give: its value.", formula: "v = Wv x + b" },
    { name: "Share times value", says: "Each value counts as much as its share.", formula: "share × v" },
    { name: "The sum", says: `All of them added: what head ${data.head} tells “${name}”. A last matrix, Wo, mixes ${data.heads === 1 ? "this one head" : `the ${data.heads} heads`} into one vector of ${data.width} numbers.`, formula: "z = the sum of share × v" },
  ];
};

bertsmith.stepBar = (share) => {
  const bar = bertsmith.make("div", { class: "step-bar", "aria-hidden": "true" }, bertsmith.make("div", {}));
  bar.firstChild.style.width = `${100 * share}%`;
  return bar;
};

bertsmith.drawStep = (data, at, tell) => {
  const { make } = bertsmith, k = data.turned_k || data.k, q = data.turned_q || data.q;
  const number = (value) => value.toFixed(3).replace("-", "−");
  const most = (rows) => rows.flat().reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  const strip = (values, what, limit) => bertsmith.cells(values, { limit, label: what,
    tell: (i) => i !== null && tell(`${what}, number ${i} of ${values.length}: ${values[i]}`) });
  const line = (name, values, under) => make("div", { class: "step-vector" }, make("b", {}, name), strip(values, name, 0), make("span", { class: "quiet" }, under));
  const name = bertsmith.visible(data.name);
  const vectors = [line(`x of “${name}”`, data.x, `${data.width} numbers`)];
  if (at >= 1) vectors.push(line("query q", data.q, "= Wq x + b"));
  if (at >= 1 && data.turned_q) vectors.push(line("q, turned", data.turned_q, `by place ${data.place}`));
  if (at < 2) return make("div", {}, vectors);

  const shares = most(data.contributions), limits = { k: most(k), v: most(data.v) };
  // Each column: from which stage it is there, its name, whether a narrow screen still needs it, and its cell.
  const columns = [
    [2, data.turned_k ? "key k, turned" : "key k", [2, 3], (i, word) => strip(k[i], `key of ${word}`, limits.k)],
    [3, "q · k", [3, 4], (i) => number(data.dots[i])],
    [4, `÷ ${data.by}`, [4, 5], (i) => (data.masked[i] && at > 4 ? "−∞" : number(data.scaled[i]))],
    [5, "softmax", [5], (i) => (data.masked[i] ? make("span", { class: "quiet" }, `masked: ${data.reasons[i]}`)
      : bertsmith.stepBar(data.weights[i]))],
    [5, "share", [5, 6, 7, 8], (i) => data.weights[i].toFixed(4)],
    [6, "value v", [6], (i, word) => strip(data.v[i], `value of ${word}`, limits.v)],
    [7, "share × value", [7, 8], (i, word) => strip(data.contributions[i], `what ${word} gives`, shares)],
  ].filter(([from]) => from <= at);
  const look = (column) => `${column[0] === at || (at === 8 && column[0] === 7) ? "step-now" : ""} ${column[2].includes(at) ? "" : "step-past"}`;
  const rows = data.shown.map((i) => {
    const word = bertsmith.visible(data.pieces[i]);
    const products = () => {
      const some = q.slice(0, 3).map((value, d) => `${number(value)} × ${number(k[i][d])}`).join(" + ");
      tell(`${word}: q · k = ${some} + … = ${data.dots[i]}; ÷ ${data.by} = ${data.scaled[i]}; share ${data.masked[i] ? "0 (masked)" : data.weights[i]}`);
    };
    return make("tr", { class: `${i === data.place ? "step-own" : ""} ${data.masked[i] && at >= 5 ? "step-masked" : ""}` },
      make("th", { scope: "row", onpointerenter: products }, word),
      columns.map((column) => make("td", { class: look(column), onpointerenter: column[0] > 2 && column[0] < 6 ? products : () => {} }, column[3](i, word))));
  });
  const foot = at < 8 ? null : make("tfoot", {}, make("tr", {},
    make("th", { scope: "row" }, "sum"), columns.slice(0, -1).map((column) => make("td", { class: look(column) }, column[1] === "share" ? "1" : "")),
    make("td", { class: "step-now" }, strip(data.result, `the sum, what head ${data.head} gives`, 0))));
  const top = make("tr", {}, make("th", { scope: "col" }, "word"), columns.map((column) => make("th", { scope: "col", class: `${look(column)} ${["q", "÷"].includes(column[1][0]) || column[1] === "share" ? "step-number" : ""}` }, column[1])));
  return make("div", {}, vectors, make("div", { class: "step-table" }, make("table", {}, make("thead", {}, top), make("tbody", {}, rows), foot)));
};

// All numbers as text: for those who cannot point, and for copying.
bertsmith.listStep = (data) => {
  const { make } = bertsmith, list = (values) => values.join("  ");
  const rows = [["x", data.x], ["q", data.q], ...(data.turned_q ? [["q, turned", data.turned_q]] : [])];
  for (const i of data.shown) {
    const word = bertsmith.visible(data.pieces[i]);
    rows.push([`k of ${word}`, data.k[i]], ...(data.turned_k ? [[`k of ${word}, turned`, data.turned_k[i]]] : []), [`v of ${word}`, data.v[i]]);
  }
  rows.push(["q · k", data.shown.map((i) => data.dots[i])], ["share", data.shown.map((i) => data.weights[i])], ["sum", data.result]);
  const box = make("details", {}, make("summary", {}, "All numbers"));
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1)
      box.append(make("dl", { class: "step-numbers" }, rows.flatMap(([name, values]) => [make("dt", {}, name), make("dd", {}, list(values))])));
  });
  return box;
};
