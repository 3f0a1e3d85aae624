// The neuron view: the query of one piece times the key of every piece, number by number, and the weight it makes.
bertsmith.attention.neurons = (picture) => {
  const { data } = picture;
  const top = 74, step = 20;
  const count = data.pieces.length, size = data.queries.shape[3];
  const known = new Map();  // layer -> { queries, keys }
  const load = async (layer) => {
    if (known.has(layer)) return;
    const queries = await bertsmith.unpackPart(data.queries, layer), keys = await bertsmith.unpackPart(data.keys, layer);
    known.set(layer, { queries, keys });
  };
  const vector = (values, head, piece) => values.subarray((head * count + piece) * size, (head * count + piece + 1) * size);
  const layout = (width) => {
    const left = Math.min(130, width * 0.23), numbers = width < 600 ? 78 : 130;
    const strip = (width - left - numbers - 18) / 2;
    return { left, strip, second: left + strip + 10, third: left + 2 * strip + 18, numbers };
  };
  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const paintStrip = (pen, values, most, x, y, width, height) => {
    const cell = width / values.length;
    pen.fillStyle = picture.colour("--track");
    pen.fillRect(x, y, width, height);
    for (let place = 0; place < values.length; place++) {
      const share = values[place] / most;
      pen.globalAlpha = Math.min(1, Math.abs(share));
      pen.fillStyle = picture.colour(share > 0 ? "--c1" : "--c2");
      pen.fillRect(x + place * cell, y, cell, height);
    }
    pen.globalAlpha = 1;
  };
  const write = (pen, text, x, y, colour, align) => {
    pen.fillStyle = picture.colour(colour);
    pen.textAlign = align || "left";
    pen.fillText(text, x, y);
  };
  const query = () => {
    const { rows } = picture.sides();
    return rows[Math.min(picture.state.token, rows.length - 1)];
  };
  const scale = 1 / Math.sqrt(size);

  const multiply = (q, key) => key.map((value, place) => value * q[place]);
  const add = (product) => product.reduce((sum, value) => sum + value, 0) * scale;

  const paintRow = (pen, place, unit, found, q, head, most, weight) => {
    const { left, strip, second, third, numbers } = found;
    const piece = picture.shown().units[unit].pieces[0], y = top + place * step;
    const key = vector(known.get(picture.state.layer).keys, head, piece), product = multiply(q, key);
    const score = add(product);
    pen.font = "13px system-ui, sans-serif";
    const name = bertsmith.fit(pen, picture.shown().units[unit].label, left - 10);
    write(pen, name, left - 6, y + step / 2, unit === query() ? "--c2" : "--ink", "right");
    paintStrip(pen, key, most.key, left, y + 3, strip, step - 6);
    paintStrip(pen, product, most.product, second, y + 3, strip, step - 6);
    pen.globalAlpha = 0.35;
    pen.fillStyle = picture.colour("--c1");
    pen.fillRect(third, y + 2, (numbers - 4) * weight, step - 4);
    pen.globalAlpha = 1;
    pen.font = "12px system-ui, sans-serif";
    if (numbers > 100) write(pen, score.toFixed(2), third + 42, y + step / 2, "--quiet", "right");
    write(pen, bertsmith.percent(weight), third + numbers - 6, y + step / 2, "--ink", "right");
  };

  return {
    needs: () => [picture.state.layer],
    load,
    height: () => top + picture.sides().columns.length * step + 6,
    paint: (pen, width, from, height) => {
      const { layer } = picture.state, head = picture.heads()[0], found = layout(width), unit = query();
      if (!known.has(layer) || unit === undefined) return;
      const { left, strip, second, third, numbers } = found, units = picture.shown().units, { columns } = picture.sides();
      const q = vector(known.get(layer).queries, head, units[unit].pieces[0]);
      const keys = columns.map((one) => vector(known.get(layer).keys, head, units[one].pieces[0]));
      const most = { key: Math.max(...keys.map(largest)), product: Math.max(...keys.map((key) => largest(multiply(q, key)))) };
      const weights = picture.row(head, unit);
      pen.textBaseline = "middle";
      pen.font = "13px system-ui, sans-serif";
      write(pen, bertsmith.fit(pen, units[unit].label, left - 10), left - 6, 30, "--c2", "right");
      paintStrip(pen, q, largest(q), left, 20, strip, 20);
      pen.font = "12px system-ui, sans-serif";
      write(pen, `query q of this piece (${size} numbers)`, left, 10, "--quiet");
      write(pen, "key k", left, top - 12, "--quiet");
      write(pen, "q × k", second, top - 12, "--quiet");
      if (numbers > 100) write(pen, "sum/√d", third + 42, top - 12, "--quiet", "right");
      write(pen, "weight", third + numbers - 6, top - 12, "--quiet", "right");
      const first = Math.max(0, Math.floor((from - top) / step));
      const last = Math.min(columns.length, Math.ceil((from + height - top) / step));
      for (let place = first; place < last; place++) {
        paintRow(pen, place, columns[place], found, q, head, most, weights[columns[place]]);
      }
    },
    pick: (x, y, width) => {
      const place = Math.floor((y - top) / step);
      if (place < 0 || place >= picture.sides().columns.length) return { line: null };
      return { line: place, name: x < layout(width).left ? place : null };
    },
    unit: query,
    size,
    // The score of the piece in this line, before the softmax; null until its layer is unpacked.
    score: (place) => {
      const found = known.get(picture.state.layer), head = picture.heads()[0], units = picture.shown().units;
      if (!found) return null;
      const piece = units[picture.sides().columns[place]].pieces[0];
      return add(multiply(vector(found.queries, head, units[query()].pieces[0]), vector(found.keys, head, piece)));
    },
    bounds: (place) => [top + (place - 1) * step, top + (place + 2) * step],
  };
};
