// How answers are shown, by job: `page.answers[job](host, told, about)` puts what the server told into `host`. `about` has
// the fields as they were asked (`given`), the model's card, and `put(field, text)` to write into the form.
"use strict";
{
const { page } = bertsmith;
page.answers = {};

page.percent = (score) => {
  if (score > 0 && score < 0.0005) return "< 0.1 %";
  return (100 * score).toFixed(score >= 0.9995 || score === 0 ? 0 : 1) + " %";
};

// Bars that keep their places between answers, so that chances grow and shrink before one's eyes. A row is { key, label,
// score, told, onpick }; `score` from 0 to 1 is the bar's length, and a thin mark shows where it ended before.
page.drawBars = (host, rows, title) => {
  const make = bertsmith.make;
  let list = host.firstElementChild;
  if (!list || !list.classList.contains("scores")) {
    list = make("ol", { class: "scores" });
    host.replaceChildren(list);
  }
  list.setAttribute("aria-label", title);
  const old = new Map([...list.children].map((item) => [item.dataset.key, item]));
  const items = rows.map((row) => {
    const item = old.get(row.key) || makeBar(row);
    fillBar(item, row, old.has(row.key));
    return item;
  });
  list.replaceChildren(...items);
};

function makeBar(row) {
  const make = bertsmith.make;
  const inside = [make("span", { class: "score-label" }), make("span", { class: "score-value" }),
    make("span", { class: "score-track", "aria-hidden": "true" }, make("span", { class: "score-fill" }), make("span", { class: "score-was" }))];
  const body = row.onpick ? make("button", { type: "button", class: "score" }, ...inside) : make("div", { class: "score" }, ...inside);
  return make("li", { "data-key": row.key }, body);
}

function fillBar(item, row, wasThere) {
  const part = (name) => item.querySelector(name);
  const fill = part(".score-fill"), was = part(".score-was");
  const length = Math.max(0, Math.min(1, row.score)) * 100;
  part(".score-label").textContent = row.label;
  part(".score-value").textContent = row.told === undefined ? page.percent(row.score) : row.told;
  was.hidden = !wasThere || Math.abs(Number(item.dataset.length) - length) < 0.5;
  was.style.left = item.dataset.length + "%";
  item.dataset.length = length;
  fill.style.width = length + "%";
  if (row.hint) item.firstElementChild.title = row.hint;
  if (row.onpick) item.firstElementChild.onclick = row.onpick;
}

function drawParts(host, count, kind = "div") {
  while (host.children.length > count) host.lastElementChild.remove();
  while (host.children.length < count) host.append(bertsmith.make(kind, { class: "part" }));
  return [...host.children];
}

page.answers.fill = (host, told, about) => {
  const several = Array.isArray(told.answers[0]);
  const masks = several ? told.answers : [told.answers];
  const parts = drawParts(host, masks.length + (told.joint ? 1 : 0), "section");
  masks.forEach((answers, number) => {
    const [head, body] = titled(parts[number], several ? `Mask ${number + 1}` : "");
    head.hidden = !several;
    const rows = answers.map((one) => ({
      key: String(one.token_str), label: String(one.token_str).trim() || "␣", score: one.score, hint: one.sequence,
      onpick: () => about.put("text", one.sequence),
    }));
    page.drawBars(body, rows, several ? `Words for mask ${number + 1}` : "Words for the mask");
  });
  if (told.joint) {
    const [, body] = titled(parts[masks.length], "All together");
    const rows = told.joint.map((one) => ({
      key: one.sequence, label: one.sequence, score: one.score, onpick: () => about.put("text", one.sequence),
    }));
    page.drawBars(body, rows, "The best fillings of all masks");
  }
};

function titled(part, title) {
  if (part.children.length !== 2 || part.firstElementChild.tagName !== "H3") {
    part.replaceChildren(bertsmith.make("h3"), bertsmith.make("div"));
  }
  part.firstElementChild.textContent = title;
  part.firstElementChild.hidden = !title;
  return [...part.children];
}

page.answers.classify = (host, told) => {
  if (!told.answers.length) return host.replaceChildren(quiet("No class counts as likely enough."));
  page.drawBars(host, told.answers.map((one) => ({ key: one.label, label: one.label, ...asBar(one.score) })), "Classes");
};

page.answers.follows = (host, told) =>
  page.drawBars(host, told.answers.map((one) => ({ key: String(one.label), label: sayLabel(one.label), score: one.score })), "Whether it follows");

const sayLabel = (label) => String(label).replaceAll("_", " ");

// Scores that a head gives raw are not chances: the number is told, and its sigmoid is the bar.
const asBar = (score) => (score < 0 || score > 1 ? { score: 1 / (1 + Math.exp(-score)), told: score.toFixed(3) } : { score });

page.answers.score = (host, told) => {
  const values = told.answers.map((one) => bertsmith.make("p", { class: "figure" }, one.score.toFixed(3)));
  host.replaceChildren(...values);
};

page.answers.choose = (host, told) => page.drawBars(host, told.answers.map((one) => ({ key: String(one.index), label: one.choice, score: one.score })), "Choices");

// A cosine is told as it is; a bar has no length below nothing.
const likeness = (score) => ({ score, told: score.toFixed(3) });

page.answers.similar = (host, told, about) => {
  if (about.way.alone) {
    const score = told.answers[0].score;
    host.replaceChildren(bertsmith.make("p", { class: "figure" }, score.toFixed(3)), quiet(sayLikeness(score)), bertsmith.make("div"));
    return page.drawBars(host.lastElementChild, [{ key: "cosine", label: "cosine of their vectors", ...likeness(score) }], "Likeness");
  }
  page.drawBars(host, told.answers.map((one) => ({ key: String(one.index) + one.text, label: one.text, ...likeness(one.score) })), "Texts, nearest first");
};

function sayLikeness(score) {
  const words = [[0.8, "nearly the same"], [0.55, "much alike"], [0.3, "somewhat alike"], [-2, "hardly alike"]];
  return words.find(([least]) => score >= least)[1];
}

page.answers.rerank = (host, told) =>
  page.drawBars(host, told.answers.map((one) => ({ key: String(one.index) + one.text, label: one.text, ...asBar(one.score) })), "Texts, best first");

page.answers.search = (host, told) => {
  const make = bertsmith.make;
  if (!told.answers.length) return host.replaceChildren(quiet("Nothing was found."));
  const items = told.answers.map((one) => make("li", {},
    make("p", { class: "passage" }, one.text),
    make("p", { class: "quiet" }, `${one.document} · characters ${one.start} to ${one.end} · ${one.score.toFixed(3)}`)));
  host.replaceChildren(make("ol", { class: "passages" }, ...items));
};

const quiet = (text) => bertsmith.make("p", { class: "quiet" }, text);
page.quiet = quiet;
}
