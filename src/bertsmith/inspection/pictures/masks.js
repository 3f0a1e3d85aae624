// The words behind a mask in several variants of one sentence, side by side.
"use strict";
bertsmith.pictures.masks = (host, data, options) => {
  const { make, visible } = bertsmith;
  const own = (element, number) => { element.style.setProperty("--own", `var(--c${(number % 6) + 1})`); return element; };
  const spell = ({ text, start, end }, number) => {
    const points = Array.from(text);
    const part = (a, b) => visible(points.slice(a, b).join(""));
    return make("bdi", {}, part(0, start), own(make("mark", {}, part(start, end)), number), part(end));
  };
  const cards = data.variants.map((variant, number) => {
    const rows = data.words.map((word, i) => {
      const bar = make("i");
      bar.style.width = `${100 * variant.chances[i]}%`;
      return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, visible(word))),
        make("td", { class: "fill" }, own(make("div", { class: "gauge" }, bar), number)), make("td", { class: "n" }, bertsmith.percent(variant.chances[i])));
    });
    rows.forEach((row) => { row.children[1].style.width = "60%"; });
    const moved = number ? ` · ${bertsmith.percent(variant.distance)} moved` : "";
    return make("div", { class: "card" }, make("h2", {}, spell(variant, number)),
      make("p", { class: "quiet" }, `${variant.entropy.toFixed(1)} bits of doubt${moved}`),
      make("table", { class: "bars" }, make("tbody", {}, rows)));
  });
  host.classList.add("picture");
  host.replaceChildren(make("h1", {}, "What stands behind the mask"),
    make("p", { class: "quiet" }, "The likeliest words of each variant, with their probability in all of them; how much of it moved is told against the first."),
    make("div", { class: "pair" }, cards));
  host.children[2].style.marginTop = "10px";
};
