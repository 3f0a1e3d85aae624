// What the masked-token head would say: a row a layer, a column a piece, the likeliest answer in each cell.
"use strict";
bertsmith.pictures.lens = (host, data, options) => {
  const { make, visible } = bertsmith;
  const readout = make("div", { class: "card readout", "aria-live": "polite" });
  const cells = data.layers.map((layer, row) => data.pieces.map((piece, place) => {
    const chance = data.chances[row][place][0], word = visible(data.words[data.top[row][place][0]]);
    const cell = make("td", { tabindex: -1, class: [chance > 0.55 ? "strong" : "", data.ranks[row][place] === 1 ? "right" : ""].join(" ").trim(),
      onpointerenter: () => tell(row, place), onfocus: () => tell(row, place), onclick: () => tell(row, place) }, make("bdi", {}, word));
    cell.style.setProperty("--sure", `${(100 * chance).toFixed(1)}%`);
    cell.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const next = by && cells[row + by[0]]?.[place + by[1]];
      if (!by) return;
      event.preventDefault();
      next?.focus();
    });
    return cell;
  }));

  const tell = (row, place) => {
    const bars = data.top[row][place].map((number, i) => {
      const chance = data.chances[row][place][i], bar = make("i");
      bar.style.width = `${100 * chance}%`;
      const gauge = make("div", { class: "gauge" }, bar);
      gauge.style.setProperty("--own", "var(--c1)");
      return make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, visible(data.words[number]))), make("td", {}, gauge),
        make("td", { class: "n" }, bertsmith.percent(chance)));
    });
    const final = visible(data.words[data.final[place]]);
    bars.forEach((bar) => { bar.children[1].style.width = "70%"; });
    readout.replaceChildren(
      make("p", {}, make("b", {}, `Layer ${data.layers[row]}`), " at ", make("b", {}, make("bdi", {}, visible(data.pieces[place])))),
      make("table", { class: "bars" }, make("tbody", {}, bars)),
      make("p", { class: "quiet" }, `the final answer, “${final}”, has rank ${data.ranks[row][place].toLocaleString("en")} here; ` +
        `the piece that stands there has rank ${data.own[row][place].toLocaleString("en")}`));
  };

  const head = data.pieces.map((piece, place) =>
    make("th", { scope: "col", class: data.masks.includes(place) ? "mask" : null }, make("bdi", {}, visible(piece))));
  const table = make("table", { class: "lens", "aria-label": "The likeliest piece by layer and place" },
    make("thead", {}, make("tr", {}, make("th", {}), head)),
    make("tbody", {}, data.layers.map((layer, row) => make("tr", {}, make("th", { scope: "row" }, `layer ${layer}`), cells[row]))));
  host.classList.add("picture");
  host.replaceChildren(
    make("h1", {}, "What each layer would say"),
    make("p", { class: "quiet" }, "The likeliest piece if the model had to answer after so many layers; the stronger the colour, the surer. ",
      "An orange line: it is the final answer already. Point at a cell, or walk with the arrow keys."),
    make("div", { class: "card wide" }, table), readout);
  host.children[2].style.margin = "10px 0";
  const first = data.masks.length ? data.masks[0] : Math.min(1, data.pieces.length - 1);
  cells[0][first].tabIndex = 0;
  tell(data.layers.length - 1, first);
  // So that the mask is in sight where the table is wider than the page.
  const box = host.children[2], column = cells[0][first];
  box.scrollLeft = column.offsetLeft - box.clientWidth / 2;
};
