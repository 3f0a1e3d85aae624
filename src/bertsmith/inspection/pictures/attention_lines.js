// The head view: two columns of words and a line from each word to what it looks at, a colour a head.
bertsmith.attention.lines = (picture) => {
  const ALL = 2500, ONE = 360;  // lines that are drawn while no word is chosen, and of one word; more are a carpet
  const top = 26;
  const step = () => (picture.sides().rows.length > 90 ? 17 : 22);
  const ends = (width) => {
    const room = Math.min(190, Math.max(84, width * 0.28)), middle = Math.min(width, 860);
    const left = (width - middle) / 2 + room;
    return { left, right: width - left, room };
  };
  let kept = { key: "", lines: [] };

  // The strongest lines of all words and heads: [row, column, head, weight].
  const strongest = () => {
    const key = picture.key();
    if (kept.key === key) return kept.lines;
    const { rows, columns } = picture.sides();
    const lines = [];
    const floor = Math.min(0.05, 4 / columns.length);
    for (const head of picture.heads()) {
      rows.forEach((unit, from) => {
        const weights = picture.row(head, unit);
        columns.forEach((other, to) => { if (weights[other] >= floor) lines.push([from, to, head, weights[other]]); });
      });
    }
    lines.sort((a, b) => b[3] - a[3]);
    kept = { key, lines: lines.slice(0, ALL).reverse() };
    return kept.lines;
  };

  const chosenLines = () => {
    const { rows, columns } = picture.sides();
    const { side, at } = picture.state;
    const lines = [];
    for (const head of picture.heads()) {
      if (side === "from") {
        const weights = picture.row(head, rows[at]);
        columns.forEach((other, to) => lines.push([at, to, head, weights[other]]));
      } else {
        rows.forEach((unit, from) => lines.push([from, at, head, picture.row(head, unit)[columns[at]]]));
      }
    }
    return lines.filter((line) => line[3] >= 0.002).sort((a, b) => a[3] - b[3]).slice(-ONE);
  };

  const middle = (place) => top + (place + 0.5) * step();

  const paintLines = (pen, width, from, height) => {
    const { left, right } = ends(width);
    const isChosen = picture.state.at !== null;
    const lines = isChosen ? chosenLines() : strongest();
    const most = lines.length ? lines[lines.length - 1][3] : 1;
    const heads = picture.heads();
    for (const [query, key, head, weight] of lines) {
      const y1 = middle(query), y2 = middle(key);
      if (Math.max(y1, y2) < from || Math.min(y1, y2) > from + height) continue;
      pen.globalAlpha = Math.max(0.03, (weight / most) ** (isChosen ? 0.7 : 1)) * (isChosen ? 0.95 : 0.75);
      pen.strokeStyle = picture.tint(head);
      pen.lineWidth = isChosen ? 1 + 2.2 * (weight / most) : 0.8 + 1.4 * weight;
      const nudge = heads.length > 1 ? (heads.indexOf(head) / (heads.length - 1) - 0.5) * Math.min(8, step() / 2.4) : 0;
      pen.beginPath();
      pen.moveTo(left + 6, y1 + nudge);
      const bend = (right - left) * 0.42;
      pen.bezierCurveTo(left + 6 + bend, y1 + nudge, right - 6 - bend, y2 + nudge, right - 6, y2 + nudge);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  };

  // The share of the chosen word that goes to, or comes from, each word of the other column.
  const shares = () => {
    const { rows, columns } = picture.sides();
    const { side, at } = picture.state;
    if (at === null) return null;
    if (side === "from") { const weights = picture.mean(rows[at]); return columns.map((unit) => weights[unit]); }
    return rows.map((unit) => picture.mean(unit)[columns[at]]);
  };

  const paintWords = (pen, width, from, height, places, side, found) => {
    const { left, right, room } = ends(width);
    const { state } = picture;
    const isLeft = side === "from", first = Math.max(0, Math.floor((from - top) / step()) - 1);
    const last = Math.min(places.length, Math.ceil((from + height - top) / step()) + 1);
    const most = found ? Math.max(...found, 1e-9) : 1;
    pen.font = `${step() > 20 ? 14 : 12}px system-ui, sans-serif`;
    pen.textAlign = isLeft ? "right" : "left";
    pen.textBaseline = "middle";
    for (let place = first; place < last; place++) {
      const unit = picture.shown().units[places[place]], y = middle(place);
      const isChosen = state.at === place && state.side === side;
      const x = isLeft ? left - room : right, number = found && found[place] >= 0.0005 ? bertsmith.percent(found[place]) : "";
      if (found) {
        pen.globalAlpha = 0.34 * (found[place] / most);
        pen.fillStyle = picture.colour("--c1");
        pen.fillRect(x, y - step() / 2 + 1, room, step() - 2);
        pen.globalAlpha = 1;
      }
      if (isChosen) {
        pen.fillStyle = picture.colour("--c1");
        pen.fillRect(x, y - step() / 2 + 1, room, step() - 2);
      }
      pen.fillStyle = picture.colour(isChosen ? "--on" : unit.special ? "--quiet" : "--ink");
      const wide = room - 8 - (number ? 46 : 0);
      pen.fillText(bertsmith.fit(pen, unit.label, wide), isLeft ? left - 6 : right + 6, y);
      if (!number) continue;
      pen.save();
      pen.font = "11px system-ui, sans-serif";
      pen.textAlign = isLeft ? "left" : "right";
      pen.fillText(number, isLeft ? x + 3 : x + room - 3, y);
      pen.restore();
    }
  };

  return {
    height: () => top + Math.max(picture.sides().rows.length, picture.sides().columns.length) * step() + 8,
    paint: (pen, width, from, height) => {
      const { left, right } = ends(width);
      const { rows, columns } = picture.sides();
      paintLines(pen, width, from, height);
      const found = shares(), { side } = picture.state;
      paintWords(pen, width, from, height, rows, "from", found && side === "to" ? found : null);
      paintWords(pen, width, from, height, columns, "to", found && side === "from" ? found : null);
      pen.fillStyle = picture.colour("--quiet");
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "right";
      pen.fillText("this word …", left - 6, 13);
      pen.textAlign = "left";
      pen.fillText("… looks at", right + 6, 13);
    },
    pick: (x, y, width) => {
      const { left, right, room } = ends(width);
      const side = x < left + 40 ? "from" : x > right - 40 ? "to" : null;
      const place = Math.floor((y - top) / step());
      const places = side === "from" ? picture.sides().rows : picture.sides().columns;
      if (!side || x < left - room || x > right + room || place < 0 || place >= places.length) return { at: null };
      return { side, at: place };
    },
    bounds: (place) => [top + (place - 1) * step(), top + (place + 2) * step()],
  };
};
