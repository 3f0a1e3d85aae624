// What changes without each head: a cell a head, layers down, orange where the score falls and blue where it rises.
"use strict";
bertsmith.pictures.heads = (host, data, options) => {
  const { make } = bertsmith;
  const signed = (value) => {
    if (value === null) return "–";
    if (!value) return "0";
    const size = Math.abs(value);
    return `${value < 0 ? "−" : "+"}${size >= 0.0005 ? size.toFixed(3) : size.toExponential(0)}`;
  };
  const count = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
  const effects = new Map(data.effects.map((one) => [one.layer * data.heads + one.head, one]));
  const cut = new Set(data.cut.map(([layer, head]) => layer * data.heads + head));
  const most = data.effects.reduce((a, one) => Math.max(a, Math.abs(one.change || 0)), 0) || 1;
  const readout = make("p", { class: "card readout shade-readout", "aria-live": "polite" });
  const describe = (one) => signed(one.change) +
    (one.low === null ? "" : `, between ${signed(one.low)} and ${signed(one.high)} (95 %), p ${one.p.toFixed(3)}`) +
    (one.changed === null ? "" : `; ${one.changed} of ${data.examples} answers are others`);
  const rest = () => {
    const named = data.cut.map((place) => place.join(".")).join(", ");
    if (data.together) readout.replaceChildren(`Without ${named}: `, make("b", {}, describe(data.together)));
    else readout.replaceChildren(data.low === null ? "Point at a head." :
      `Point at a head. Of ${count(data.effects.length, "head")} chance alone shows ${Number((data.effects.length / 20).toPrecision(4))} with p below 0.05.`);
  };
  const cells = [];
  const cell = (layer, head) => {
    const at = layer * data.heads + head, one = effects.get(at);
    const tell = () => one && readout.replaceChildren(`Without head ${head} of layer ${layer}: `, make("b", {}, describe(one)));
    const walk = (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!by) return;
      event.preventDefault();
      cells[layer + by[0]]?.[head + by[1]]?.focus();
    };
    const deep = one ? Math.abs(one.change || 0) / most : 0;
    const element = make("td", { tabindex: at ? -1 : 0, class: `${cut.has(at) ? "cut" : ""}${deep > 0.72 ? " strong" : ""}`,
      onpointerenter: tell, onpointerleave: rest, onfocus: tell, onblur: rest, onkeydown: walk },
    one ? signed(one.change) : cut.has(at) ? "cut" : "");
    element.style.setProperty("--own", one && (one.change || 0) >= 0 ? "var(--c1)" : "var(--c2)");
    element.style.setProperty("--deep", one ? `${88 * deep}%` : cut.has(at) ? "88%" : "0%");
    return element;
  };
  const range = (length) => Array.from({ length }, (_, i) => i);
  for (const layer of range(data.layers)) cells.push(range(data.heads).map((head) => cell(layer, head)));
  const value = data.value === null ? "undefined" : data.value.toFixed(4);
  const whole = data.low === null ? `${data.what}: ${value} with all heads.` :
    `${data.what} on ${count(data.examples, "example")}: ${value} with all heads, between ${data.low.toFixed(4)} and ${data.high.toFixed(4)} (95 %).`;
  host.classList.add("picture");
  host.replaceChildren(
    make("h1", {}, data.together ? "Without some heads" : "Without each head"),
    make("p", { class: "quiet" }, bertsmith.visible(whole), " Orange: it falls without the head, which was of use; blue: it rises."),
    make("div", { class: "card wide heads-box" }, make("table", { class: "heads", "aria-label": "The change without each head" },
      make("thead", {}, make("tr", {}, make("th", {}, "layer ↓ head →"), range(data.heads).map((head) => make("th", { scope: "col" }, String(head))))),
      make("tbody", {}, cells.map((row, layer) => make("tr", {}, make("th", { scope: "row" }, String(layer)), row))))),
    readout);
  rest();
};
