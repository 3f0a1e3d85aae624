// The views made of squares: one head's matrix, all heads as small matrices, and one word through all heads.

// Colours of 256 steps from the card to the accent, as [r, g, b] that pixels take.
bertsmith.attention.ramp = (picture) => {
  const pen = bertsmith.make("canvas", { width: 2, height: 1 }).getContext("2d", { willReadFrequently: true });
  ["--card", "--c1"].forEach((name, place) => {
    pen.fillStyle = picture.colour(name);
    pen.fillRect(place, 0, 1, 1);
  });
  const [r, g, b, , R, G, B] = pen.getImageData(0, 0, 2, 1).data;
  const mix = (low, high, share) => Math.round(low + (high - low) * share);
  return Array.from({ length: 256 }, (_, step) => [mix(r, R, step / 255), mix(g, G, step / 255), mix(b, B, step / 255)]);
};

// A small canvas, a pixel a weight; `at(row, column)` gives weights from 0 to 1. Roots, so that small ones are seen.
bertsmith.attention.bitmap = (rows, columns, ramp, at) => {
  const canvas = bertsmith.make("canvas", { width: Math.max(columns, 1), height: Math.max(rows, 1) });
  const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
  for (let row = 0, byte = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, byte += 4) {
      const [r, g, b] = ramp[Math.min(255, Math.round(255 * Math.sqrt(at(row, column))))];
      image.data[byte] = r; image.data[byte + 1] = g; image.data[byte + 2] = b; image.data[byte + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
};

// The matrix of the chosen heads (their mean): a row looks at the columns.
bertsmith.attention.matrix = (picture) => {
  let kept = { key: "", bitmap: null, most: 1 };
  const layout = (width) => {
    const { rows, columns } = picture.sides();
    const room = Math.min(120, width * 0.24);
    const cell = Math.min(26, (width - room - 12) / Math.max(columns.length, 1));
    const isNamed = cell >= 9;
    const left = isNamed ? room : 34, size = isNamed ? cell : Math.min(26, (width - 44) / Math.max(columns.length, 1));
    const beside = Math.max(0, (width - left - size * columns.length - 12) / 2);
    return { rows, columns, isNamed, size, left: left + (isNamed ? beside : 0), top: isNamed ? room : 24, room };
  };
  const bitmap = () => {
    const key = picture.key() + picture.colour("--card");
    if (kept.key !== key) {
      const { rows, columns } = picture.sides(), weights = rows.map((unit) => picture.mean(unit));
      const most = weights.reduce((high, row) => columns.reduce((higher, unit) => Math.max(higher, row[unit]), high), 1e-9);
      kept = { key, most, bitmap: bertsmith.attention.bitmap(rows.length, columns.length, bertsmith.attention.ramp(picture),
        (row, column) => weights[row][columns[column]] / most) };
    }
    return kept.bitmap;
  };
  const paintNames = (pen, { rows, columns, isNamed, size, left, top, room }) => {
    const { at, over } = picture.state, units = picture.shown().units;
    pen.font = `${Math.min(13, Math.max(9, size - 1))}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const name = (place, isRow, isChosen) => {
      pen.save();
      pen.fillStyle = picture.colour(isChosen ? "--c2" : "--ink");
      pen.textAlign = isRow ? "right" : "left";
      if (isRow) pen.translate(left - 5, top + (place + 0.5) * size);
      else { pen.translate(left + (place + 0.5) * size, top - 5); pen.rotate(-Math.PI / 2); }
      pen.fillText(bertsmith.fit(pen, units[(isRow ? rows : columns)[place]].label, room - 8), 0, 0);
      pen.restore();
    };
    const tick = (place, isRow) => {
      pen.fillStyle = picture.colour("--quiet");
      pen.font = "10px system-ui, sans-serif";
      pen.textAlign = isRow ? "right" : "center";
      pen.fillText(String(place), isRow ? left - 4 : left + (place + 0.5) * size, isRow ? top + (place + 0.5) * size : top - 9);
    };
    rows.forEach((_, place) => (isNamed ? name(place, true, place === at) : place % 50 === 0 && tick(place, true)));
    columns.forEach((_, place) => (isNamed ? name(place, false, place === over) : place % 50 === 0 && tick(place, false)));
  };
  return {
    height: (width) => { const { top, size, rows } = layout(width); return top + size * rows.length + 10; },
    paint: (pen, width) => {
      const place = layout(width), { rows, columns, size, left, top } = place, { at, over, side } = picture.state;
      pen.imageSmoothingEnabled = size < 1;
      pen.drawImage(bitmap(), left, top, size * columns.length, size * rows.length);
      pen.strokeStyle = picture.colour("--rule");
      pen.strokeRect(left, top, size * columns.length, size * rows.length);
      paintNames(pen, place);
      pen.strokeStyle = picture.colour("--c2");
      pen.lineWidth = 1.5;
      if (at !== null && side === "from") pen.strokeRect(left, top + at * size, size * columns.length, Math.max(size, 2));
      if (at !== null && over !== null) pen.strokeRect(left + over * size, top, Math.max(size, 2), size * rows.length);
    },
    pick: (x, y, width) => {
      const { rows, columns, size, left, top } = layout(width);
      const over = Math.floor((x - left) / size), at = Math.floor((y - top) / size);
      if (at < 0 || at >= rows.length) return { at: null, over: null };
      return { side: "from", at, over: over >= 0 && over < columns.length ? over : null };
    },
    most: () => (bitmap(), kept.most),
    bounds: (place, width) => {
      const { top, size } = layout(width);
      return [top + (place - 1) * size, top + (place + 2) * size];
    },
  };
};

// All layers and heads, each a small matrix.
bertsmith.attention.model = (picture) => {
  const { data } = picture;
  let kept = { key: "", bitmaps: new Map() };
  const layout = (width) => {
    const left = 26, gap = width < 600 ? 2 : 6;
    const size = Math.min(110, (width - left - 4) / data.heads - gap);
    return { left, top: 22, gap, size, step: size + gap };
  };
  // Of pieces as they are the bytes alone tell which weight is the largest: a twentieth of the time.
  const strongest = (layer, head, part, wide) => {
    const bytes = picture.reader.bytes(layer), count = data.pieces.length, start = head * count * count;
    const most = new Uint8Array(wide * wide);
    for (let row = 0, byte = start; row < count; row++) {
      const line = Math.floor(row / part) * wide;
      for (let column = 0; column < count; column++, byte++) {
        const place = line + ((column / part) | 0);
        if (bytes[byte] > most[place]) most[place] = bytes[byte];
      }
    }
    return (row, column) => picture.reader.steps[most[row * wide + column]];
  };
  // At most 96 pixels to a side: of a longer text the strongest weight of each part.
  const thumbnail = (layer, head, ramp) => {
    const { rows, columns } = picture.sides();
    const part = Math.ceil(Math.max(rows.length, columns.length) / 96);
    const high = Math.ceil(rows.length / part), wide = Math.ceil(columns.length / part);
    const most = new Float32Array(high * wide);
    if (picture.isPlain()) return bertsmith.attention.bitmap(high, wide, ramp, strongest(layer, head, part, wide));
    rows.forEach((unit, row) => {
      const weights = picture.reader.row(layer, head, unit, picture.shown()), start = Math.floor(row / part) * wide;
      columns.forEach((other, column) => {
        const place = start + Math.floor(column / part);
        if (weights[other] > most[place]) most[place] = weights[other];
      });
    });
    return bertsmith.attention.bitmap(high, wide, ramp, (row, column) => most[row * wide + column]);
  };
  // A few heads a frame, so that the page answers while 144 of them are worked out.
  const bitmap = (layer, head, turn) => {
    const key = picture.shownKey() + picture.colour("--card");
    if (kept.key !== key) kept = { key, bitmaps: new Map(), ramp: bertsmith.attention.ramp(picture) };
    const name = `${layer} ${head}`;
    if (!kept.bitmaps.has(name) && picture.reader.isLoaded(layer) && performance.now() < turn) {
      kept.bitmaps.set(name, thumbnail(layer, head, kept.ramp));
    }
    return kept.bitmaps.get(name);
  };
  return {
    needs: () => data.weights.data.map((_, layer) => layer),
    height: (width) => { const { top, step } = layout(width); return top + data.layers * step + 4; },
    paint: (pen, width, from, height) => {
      const { left, top, size, step } = layout(width), turn = performance.now() + 24, { cell } = picture.state;
      let isWhole = true;
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "middle";
      pen.fillStyle = picture.colour("--quiet");
      pen.textAlign = "center";
      for (let head = 0; head < data.heads; head++) pen.fillText(String(head), left + head * step + size / 2, 11);
      for (let layer = 0; layer < data.layers; layer++) {
        const y = top + layer * step;
        pen.fillStyle = picture.colour("--quiet");
        pen.fillText(String(layer), left / 2, y + size / 2);
        if (y + size < from || y > from + height) continue;
        for (let head = 0; head < data.heads; head++) {
          const found = bitmap(layer, head, turn), x = left + head * step;
          pen.imageSmoothingEnabled = found && found.width > size;
          if (found) pen.drawImage(found, x, y, size, size);
          else { isWhole = false; pen.fillStyle = picture.colour("--track"); pen.fillRect(x, y, size, size); }
          const isChosen = layer === cell[0] && head === cell[1];
          pen.strokeStyle = picture.colour(isChosen ? "--c2" : "--rule");
          pen.lineWidth = isChosen ? 2.5 : 1;
          pen.strokeRect(x, y, size, size);
        }
      }
      if (!isWhole) picture.repaint();
    },
    pick: (x, y, width) => {
      const { left, top, step } = layout(width);
      const head = Math.floor((x - left) / step), layer = Math.floor((y - top) / step);
      const isOn = head >= 0 && head < data.heads && layer >= 0 && layer < data.layers;
      return isOn ? { cell: [layer, head] } : {};
    },
    bounds: (layer, width) => { const { top, step } = layout(width); return [top + layer * step - 4, top + (layer + 1) * step]; },
  };
};

// One word: a line for each word that it looks at, a column for each head of each layer.
bertsmith.attention.token = (picture) => {
  const { data } = picture;
  const top = 34, step = 18;
  let kept = { key: "", bitmap: null };
  const layout = (width) => {
    const left = Math.min(150, width * 0.27), gap = 3;
    return { left, gap, size: (width - left - 8 - gap * (data.layers - 1)) / (data.layers * data.heads) };
  };
  const unit = () => { const { rows } = picture.sides(); return rows[Math.min(picture.state.token, rows.length - 1)]; };
  const bitmap = () => {
    const key = `${picture.shownKey()} ${unit()} ${picture.loadedCount()} ${picture.colour("--card")}`;
    if (kept.key !== key) {
      const { columns } = picture.sides(), weights = [];
      for (let layer = 0; layer < data.layers; layer++) {
        for (let head = 0; head < data.heads; head++) weights.push(picture.reader.row(layer, head, unit(), picture.shown()));
      }
      kept = { key, weights, bitmap: bertsmith.attention.bitmap(columns.length, weights.length, bertsmith.attention.ramp(picture),
        (row, column) => weights[column][columns[row]]) };
    }
    return kept.bitmap;
  };
  return {
    needs: () => data.weights.data.map((_, layer) => layer),
    height: () => top + picture.sides().columns.length * step + 6,
    paint: (pen, width, from, height) => {
      const { left, gap, size } = layout(width), { columns } = picture.sides(), source = bitmap(), { spot } = picture.state;
      pen.imageSmoothingEnabled = false;
      pen.textBaseline = "middle";
      pen.font = "11px system-ui, sans-serif";
      for (let layer = 0; layer < data.layers; layer++) {
        const x = left + layer * (size * data.heads + gap), wide = size * data.heads;
        pen.drawImage(source, layer * data.heads, 0, data.heads, columns.length, x, top, wide, step * columns.length);
        pen.strokeStyle = picture.colour("--rule");
        pen.strokeRect(x, top, wide, step * columns.length);
        pen.fillStyle = picture.colour("--quiet");
        pen.textAlign = "center";
        pen.fillText(String(layer), x + wide / 2, top - 8);
      }
      pen.textAlign = "left";
      pen.fillText("layer, and in it a column a head", left, 10);
      pen.textAlign = "right";
      pen.font = "13px system-ui, sans-serif";
      const first = Math.max(0, Math.floor((from - top) / step));
      const last = Math.min(columns.length, Math.ceil((from + height - top) / step));
      for (let place = first; place < last; place++) {
        const one = picture.shown().units[columns[place]];
        pen.fillStyle = picture.colour(columns[place] === unit() ? "--c2" : one.special ? "--quiet" : "--ink");
        pen.fillText(bertsmith.fit(pen, one.label, left - 10), left - 6, top + (place + 0.5) * step);
      }
      if (!spot) return;
      const x = left + spot[0] * (size * data.heads + gap) + spot[1] * size;
      pen.strokeStyle = picture.colour("--c2");
      pen.lineWidth = 1.5;
      pen.strokeRect(x, top + spot[2] * step, size, step);
    },
    pick: (x, y, width) => {
      const { left, gap, size } = layout(width), wide = size * data.heads + gap;
      const place = Math.floor((y - top) / step), layer = Math.floor((x - left) / wide);
      if (place < 0 || place >= picture.sides().columns.length) return { spot: null };
      const head = Math.floor((x - left - layer * wide) / size);
      const isOn = layer >= 0 && layer < data.layers && head >= 0 && head < data.heads;
      return { spot: isOn ? [layer, head, place] : null, name: x < left ? place : null };
    },
    weight: ([layer, head, place]) => (bitmap(), kept.weights[layer * data.heads + head][picture.sides().columns[place]]),
    unit,
    bounds: (place) => [top + (place - 1) * step, top + (place + 2) * step],
  };
};
