// What an encoder is given: a column a piece, a box a vector, as BERT's paper shows its input, the real numbers in them.
"use strict";

bertsmith.pictures.input = async (host, data, options) => {
  const { make } = bertsmith;
  const readout = make("p", { class: "readout card cells-readout" }, "Point at a box to read its numbers.");
  const count = data.pieces.length, real = count - data.padding;
  const signs = ["+", "+", "↓", "↓"];
  const grid = make("div", { class: "input-columns" });
  host.append(
    make("h1", {}, bertsmith.visible(data.title)),
    make("p", { class: "quiet" }, "Each box holds a vector: blue above 0, orange below, the largest 2 % at full colour. Of each piece the vectors are added, and the sum is normed."),
    grid, readout, make("ul", { class: "quiet" }, data.notes.map((note) => make("li", {}, bertsmith.visible(note)))));

  const tables = await Promise.all(data.layers.map((layer) => layer.vectors && bertsmith.unpack(layer.vectors)));
  const names = (layer, i) => ({ token: `E ${bertsmith.visible(data.pieces[i])}`, segment: `E ${"AB"[data.segments[i]] || data.segments[i]}`, position: `E ${data.positions[i]}` })[layer] || `x ${bertsmith.visible(data.pieces[i])}`;
  const missing = { segment: "no segments", position: "not added" };
  for (let i = 0; i < count; i++) {
    const column = make("div", { class: `input-column ${i >= real ? "input-padding" : ""}`, role: "group", "aria-label": bertsmith.visible(data.pieces[i]) },
      make("b", {}, bertsmith.visible(data.pieces[i])), make("span", { class: "quiet" }, `id ${data.ids[i]}`));
    data.layers.forEach((layer, row) => {
      if (tables[row]) {
        const width = layer.vectors.shape[2], vector = tables[row].subarray(i * width, (i + 1) * width);
        const what = `${bertsmith.visible(data.pieces[i])}, ${layer.name}`;
        const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
        const tell = (at) => at !== null && (readout.textContent = `${what}: number ${at} of ${width} is ${vector[at].toPrecision(4)}; the vector's length is ${length.toFixed(3)}`);
        column.append(make("div", { class: `input-box input-${row}` }, make("span", {}, names(layer.name, i)),
          bertsmith.cells(vector, { columns: Math.max(1, Math.round(Math.sqrt(width * 2.3))), limit: layer.limit, label: what, tell })));
      } else column.append(make("div", { class: "input-box input-none" }, missing[layer.name] || "none"));
      if (row < data.layers.length - 1) column.append(make("span", { class: "input-sign", "aria-hidden": "true" }, row < 2 && !tables[row + 1] ? "\u00a0" : signs[row]));
    });
    grid.append(column);
  }
  const top = make("div", { class: "input-column input-names" }, make("b", {}, "\u00a0"), make("span", { class: "quiet" }, "\u00a0"));
  data.layers.forEach((layer, row) => {
    top.append(make("div", { class: "input-box" }, make("b", {}, layer.name), make("span", { class: "quiet" }, layer.says)));
    if (row < data.layers.length - 1) top.append(make("span", { class: "input-sign" }, "\u00a0"));
  });
  grid.prepend(top);
};
