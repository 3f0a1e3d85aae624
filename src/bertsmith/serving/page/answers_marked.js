// Answers that are places in a text: entities, the span that answers, pieces. The server counts characters as code points,
// and so is counted here.
"use strict";
{
const { page } = bertsmith;
// A text with parts of it marked: spans are { start, end, colour, label, title }, in order and apart from each other.
page.markText = (text, spans) => {
  const points = Array.from(text);
  const cut = (start, end) => points.slice(start, end).join("");
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < at || span.end <= span.start) continue;
    parts.push(cut(at, span.start));
    const label = span.label ? bertsmith.make("span", { class: "mark-label" }, span.label) : null;
    parts.push(bertsmith.make("mark", { class: `colour-${span.colour}`, title: span.title, "data-span": span.id }, cut(span.start, span.end), label));
    at = span.end;
  }
  parts.push(cut(at));
  return bertsmith.make("p", { class: "text" }, ...parts);
};

page.answers.tag = (host, told, about) => {
  const make = bertsmith.make;
  const nameOf = (one) => one.entity_group || one.entity;
  const groups = [...new Set(told.answers.map(nameOf))].sort();
  const colour = (name) => (groups.indexOf(name) % 6) + 1;
  const spans = told.answers.map((one) => ({
    start: one.start, end: one.end, colour: colour(nameOf(one)), label: nameOf(one), title: page.percent(one.score),
  }));
  const rows = told.answers.map((one) => make("tr", {},
    make("td", {}, make("span", { class: `dot colour-${colour(nameOf(one))}` }), nameOf(one)),
    make("td", {}, Array.from(about.given.text).slice(one.start, one.end).join("")), make("td", { class: "n" }, page.percent(one.score))));
  const head = make("tr", {}, ...["Kind", "Words", "Chance"].map((name) => make("th", { scope: "col" }, name)));
  host.replaceChildren(page.markText(about.given.text, spans), rows.length
    ? make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)) : page.quiet("No names were found."));
};

page.answers.answer = (host, told, about) => {
  const make = bertsmith.make;
  const found = told.answers.filter((one) => one.answer !== "");
  const best = told.answers[0];
  const spans = found.slice(0, 1).map((one) => ({ start: one.start, end: one.end, colour: 1, title: page.percent(one.score) }));
  const head = best && best.answer !== ""
    ? make("p", { class: "figure words" }, best.answer, make("small", {}, page.percent(best.score)))
    : make("p", { class: "figure words" }, "The text does not answer that.", make("small", {}, best ? page.percent(best.score) : ""));
  const parts = [head, page.markText(about.given.context, spans)];
  if (told.answers.length > 1) {
    const bars = make("div");
    page.drawBars(bars, told.answers.map((one, i) => ({ key: String(i), label: one.answer || "(no answer)", score: one.score })), "Answers");
    parts.push(bars);
  }
  if (told.no_answer !== undefined) parts.push(page.quiet(`Chance that the text holds no answer: ${page.percent(told.no_answer)}`));
  host.replaceChildren(...parts);
};

// Which text, 0 or 1, each piece is of; special pieces (-1) have no place in a text.
function sortPieces(told) {
  let text = 0, isSeen = false, isBroken = false;
  return told.offsets.map(([start, end], i) => {
    if (start === 0 && end === 0) {
      isBroken = isSeen;
      return -1;
    }
    if (told.segments[i] === 1 || isBroken) text = 1;
    isSeen = true;
    isBroken = false;
    return text;
  });
}

page.answers.tokenize = (host, told, about) => {
  const make = bertsmith.make;
  const owners = sortPieces(told);
  const texts = [about.given.text, about.given.pair].filter((one) => one !== undefined);
  const shown = texts.map((text, number) => page.markText(text, told.offsets
    .map(([start, end], id) => ({ start, end, id, colour: (wordOf(told, id) % 2) + 1 }))
    .filter((span) => owners[span.id] === number)));
  const chips = told.pieces.map((piece, id) => {
    const isLast = id + 1 === told.pieces.length || owners[id] < 0 || wordOf(told, id + 1) !== wordOf(told, id) || owners[id + 1] !== owners[id];
    const where = owners[id] < 0 ? "special" : `characters ${told.offsets[id][0]} to ${told.offsets[id][1]}`;
    return make("li", { class: isLast ? "ends" : null },
      make("button", { type: "button", class: `piece ${owners[id] < 0 ? "special" : `colour-${(wordOf(told, id) % 2) + 1}`}`, "data-piece": id, title: where, "aria-label": `${piece}, id ${told.ids[id]}, ${where}` },
        make("span", {}, piece), make("small", {}, String(told.ids[id]))));
  });
  const list = make("ol", { class: "pieces", "aria-label": "Pieces" }, ...chips);
  const facts = page.quiet(`${told.pieces.length} pieces, ${owners.filter((one) => one < 0).length} of them special`);
  const hint = make("p", { class: "quiet hint", "aria-live": "off" }, "Point at a piece to see where it stands.");
  host.replaceChildren(...shown, facts, list, hint);
  const point = (id) => {
    for (const one of host.querySelectorAll(".pointed")) one.classList.remove("pointed");
    if (id === undefined) return;
    for (const one of host.querySelectorAll(`[data-span="${id}"], [data-piece="${id}"]`)) one.classList.add("pointed");
    hint.textContent = host.querySelector(`[data-piece="${id}"]`).getAttribute("aria-label");
  };
  const find = (event) => {
    const one = event.target.closest && event.target.closest("[data-span], [data-piece]");
    point(one ? one.dataset.piece || one.dataset.span : undefined);
  };
  host.onpointerover = find;
  host.onfocusin = find;
  host.onpointerleave = () => point();
};

const wordOf = (told, id) => (told.words[id] === null || told.words[id] === undefined ? id : told.words[id]);
}
