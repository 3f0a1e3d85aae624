// Which words made an answer: the text shaded by what each word adds (blue) or takes (orange), and the same as bars.
"use strict";
bertsmith.pictures.attribution = (host, data, options) => {
  const { make, visible } = bertsmith;
  const methods = Object.keys(data.methods);
  const now = { method: methods[0], isMerged: true, isSorted: false };
  const stage = make("div");
  const about = {
    integrated: "Integrated gradients: the way from the baseline to the text, and how much of the change each word brings; all of it adds up.",
    gradient: "Gradient × input: how fast the score would change along each word's vector, here and now.",
    occlusion: "Occlusion: how far the score falls when the word is taken away.",
  };

  const draw = () => stage.replaceChildren(
    make("p", { class: "quiet" }, about[now.method]),
    ...data.parts.map((part) => bertsmith.attributedPart(data, part, now)));

  const tabs = bertsmith.tabs("Method", data.methods, now.method, (method) => { now.method = method; draw(); });
  const bar = make("div", { class: "bar" },
    bertsmith.check("whole words", now.isMerged, (is) => { now.isMerged = is; draw(); }),
    bertsmith.check("strongest first", now.isSorted, (is) => { now.isSorted = is; draw(); }));
  host.classList.add("picture");
  host.replaceChildren(
    make("h1", {}, `${data.job}: `, make("bdi", {}, visible(data.target))),
    make("p", { class: "quiet" }, `Explained is ${visible(data.explained)}. `, bertsmith.attributionKey()),
    ...(methods.length > 1 ? [tabs.element] : []), bar, stage);
  draw();
};

bertsmith.signed = (value) => {
  if (!value) return "0";
  const shown = Math.abs(value) >= 0.0005 ? Math.abs(value).toFixed(3) : Math.abs(value).toExponential(0);
  return `${value < 0 ? "−" : "+"}${shown}`;
};

bertsmith.attributionKey = () => {
  const mark = (value, text) => {
    const element = bertsmith.make("span", { class: "shade-key" }, text);
    element.style.setProperty("--own", value > 0 ? "var(--c1)" : "var(--c2)");
    return element;
  };
  return bertsmith.make("span", {}, mark(1, "adds to it"), " ", mark(-1, "takes from it"));
};

// One row that was read: what it scored, its words, and a bar for each of them.
bertsmith.attributedPart = (data, part, now) => {
  const { make, visible, signed } = bertsmith;
  const found = part.found[now.method];
  const names = now.isMerged ? part.names : part.pieces, values = now.isMerged ? found.units : found.pieces;
  const sides = now.isMerged ? part.sides : part.pieces.map((_, place) => part.sides[part.units.findIndex((unit) => unit.includes(place))]);
  const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const readout = make("p", { class: "card readout shade-readout", "aria-live": "polite" });
  const rest = () => {
    const sum = now.method === "integrated" ? `; the words add up to ${signed(found.sum)}, in ${found.steps} steps within ` +
      `${found.missed < 0.0001 ? "0.01" : (100 * found.missed).toFixed(2)} % of the difference` : "";
    const cut = part.truncated ? ` ${part.truncated} tokens did not fit and are not here.` : "";
    readout.replaceChildren(make("b", {}, part.score.toFixed(3).replace("-", "−")), ` is the score; ${part.start.toFixed(3).replace("-", "−")} that of ` +
      `the baseline (${data.baseline})${sum}.${cut}`);
  };
  const marks = [[], []]; // the words and their bars
  const tell = (i) => {
    marks.forEach((some) => some.forEach((mark, place) => mark.classList.toggle("on", place === i)));
    if (i === null) return rest();
    const share = (100 * values[i]) / (found.sum || 1);
    const told = now.method === "integrated" ? `, ${share.toFixed(1).replace("-", "−")} % of the sum` : "";
    readout.replaceChildren(make("b", {}, make("bdi", {}, visible(names[i]))), ` ${signed(values[i])}${told}`);
  };
  const walk = (event, i) => {
    const next = marks[0][i + ({ ArrowRight: 1, ArrowLeft: -1 }[event.key] || 0)];
    if (!["ArrowRight", "ArrowLeft"].includes(event.key)) return;
    event.preventDefault();
    next?.focus();
  };
  const shade = (element, value) => {
    element.style.setProperty("--own", value >= 0 ? "var(--c1)" : "var(--c2)");
    element.style.setProperty("--deep", `${(78 * Math.abs(value)) / most}%`);
    return element;
  };
  marks[0] = names.map((name, i) => shade(make("span", {
    class: `shade${sides[i] === null ? " special" : ""}`, tabindex: i ? -1 : 0, title: signed(values[i]),
    onpointerenter: () => tell(i), onpointerleave: () => tell(null), onfocus: () => tell(i), onblur: () => tell(null),
    onkeydown: (event) => walk(event, i),
  }, make("bdi", {}, visible(name) || "␣"), make("small", {}, signed(values[i]))), values[i]));
  // Zero stands where both sides have the room that they need.
  const less = values.reduce((a, b) => Math.max(a, -b), 0), whole = less + values.reduce((a, b) => Math.max(a, b), 0) || 1;
  const line = (i) => {
    const bar = shade(make("i"), values[i]);
    bar.style.width = `${(100 * Math.abs(values[i])) / whole}%`;
    bar.style.left = `${(100 * (less + Math.min(values[i], 0))) / whole}%`;
    const track = make("div", { class: "shade-bar" }, bar);
    track.style.setProperty("--zero", `${(100 * less) / whole}%`);
    return make("div", { class: "shade-line", onpointerenter: () => tell(i), onpointerleave: () => tell(null) },
      make("bdi", {}, visible(names[i]) || "␣"), track, make("span", { class: "quiet" }, signed(values[i])));
  };
  marks[1] = names.map((_, i) => line(i));
  const order = names.map((_, i) => i).filter((i) => values[i]);
  if (now.isSorted) order.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  rest();
  return make("section", { "aria-label": part.name }, make("h2", {}, part.name),
    make("p", { class: "card shade-text" }, marks[0]), readout,
    make("div", { class: "shade-lines" }, order.map((i) => marks[1][i])));
};
