// Maps of how positions are told: each cell's number under the pointer, or by the arrow keys.
"use strict";

bertsmith.pictures.positions = async (host, data, options) => {
  const { make } = bertsmith;
  const readout = make("p", { class: "readout card cells-readout" }, "Point at a map, or walk over it with the arrow keys, to read its numbers.");
  const maps = make("div", { class: "position-maps" });
  host.append(
    make("h1", {}, data.title), make("p", { class: "quiet" }, `${data.says}.`), maps, readout,
    make("ul", { class: "quiet" }, ["The colour is the number: blue up to 1, none at 0, orange down to −1.", ...data.notes].map((note) => make("li", {}, note))));
  for (const one of data.maps) {
    const values = await bertsmith.unpack(one.values), [rows, columns] = one.shape;
    let at = 0;
    const tell = (i) => {
      if (i === null) return;
      at = i;
      const row = Math.floor(i / columns) * one.row_step, column = (i % columns) * one.column_step;
      readout.textContent = `${one.rows} ${row}, ${one.columns} ${column}: ${values[i].toFixed(2).replace("-", "−")}`;
    };
    const walk = (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      if (!by) return;
      event.preventDefault();
      if (at + by >= 0 && at + by < values.length) tell(at + by);
    };
    const canvas = bertsmith.cells(values, { columns, limit: 1, label: `${one.name}: ${rows} × ${columns} numbers`, tell });
    canvas.tabIndex = 0;
    canvas.addEventListener("keydown", walk);
    canvas.addEventListener("focus", () => tell(at));
    const last = (rows - 1) * one.row_step, end = (columns - 1) * one.column_step;
    maps.append(make("figure", { class: "position-map" }, make("figcaption", {}, one.name), canvas,
      make("p", { class: "quiet" }, `rows, top to bottom: ${one.rows} 0 to ${last}; columns: ${one.columns} 0 to ${end}`)));
  }
};
