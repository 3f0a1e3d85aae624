// What the views of attention ask for: units (pieces, or words made of them) and rows of weights between them.

// `reader(data)`: layers are unpacked when they are asked for, rows are worked out one at a time.
bertsmith.attention.reader = (data) => {
  const count = data.pieces.length;
  const steps = bertsmith.steps(data.weights);
  const known = new Map();  // what is unpacked: "layer" or "rollout" -> bytes

  const load = async (layer) => {
    if (known.has(layer)) return;
    known.set(layer, await (layer === "rollout" ? bertsmith.unpackPart(data.rollout, 0) : bertsmith.unpackPart(data.weights, layer)));
  };

  // The weights from one unit to all units: means over its pieces, sums over theirs. What goes to hidden units is
  // shared out among the others.
  const row = (layer, head, unit, shown) => {
    const bytes = known.get(layer);
    const weights = new Float32Array(shown.units.length);
    if (!bytes) return weights;
    const pieces = shown.units[unit].pieces;
    const block = layer === "rollout" ? 0 : head * count * count;
    for (const piece of pieces) {
      const start = block + piece * count;
      for (let key = 0; key < count; key++) {
        const to = shown.of[key];
        if (to >= 0) weights[to] += steps[bytes[start + key]];
      }
    }
    let divisor = pieces.length;
    if (shown.isHiding) {
      divisor = 0;
      for (const weight of weights) divisor += weight;
    }
    if (divisor > 0 && divisor !== 1) for (let to = 0; to < weights.length; to++) weights[to] /= divisor;
    return weights;
  };

  return {
    load, row, steps, isLoaded: (layer) => known.has(layer), bytes: (layer) => known.get(layer),
    units: (merge, hide) => units(data, merge, hide),
  };

  function units(data, merge, hide) {
    const found = [], of = new Int32Array(count).fill(-1), at = new Map();
    data.pieces.forEach((piece, place) => {
      const word = data.words[place];
      if (hide && data.special[place]) return;
      if (merge && word !== null && at.has(word)) {
        found[at.get(word)].pieces.push(place);
      } else {
        if (word !== null) at.set(word, found.length);
        found.push({ pieces: [place], word, special: data.special[place], segment: data.segments[place] });
      }
      of[place] = merge && word !== null ? at.get(word) : found.length - 1;
    });
    for (const unit of found) unit.label = bertsmith.visible(merge ? spell(data, unit) : data.pieces[unit.pieces[0]]);
    return { units: found, of, isHiding: hide };
  }

  function spell(data, unit) {
    if (unit.word !== null && data.names) return data.names[unit.word];
    return unit.pieces.map((place) => data.pieces[place]).join("");
  }
};

// Which units look (rows) and which are looked at (columns): all, or those of one of two texts.
bertsmith.attention.sides = (shown, filter) => {
  const all = shown.units.map((_, place) => place);
  if (filter === "all") return { rows: all, columns: all };
  const of = (letter) => all.filter((place) => shown.units[place].segment === (letter === "A" ? 0 : 1));
  return { rows: of(filter[0]), columns: of(filter[1]) };
};

// What a head does, in a sentence.
bertsmith.attention.describe = (data, layer, head) => {
  const entropy = data.entropy[layer][head], habit = data.habits[layer][head];
  const spread = `spread over about ${Math.max(1, Math.round(2 ** entropy))} tokens (${entropy.toFixed(1)} bits)`;
  const distance = `on average ${data.distance[layer][head].toFixed(1)} places away`;
  const does = {
    itself: "mostly looks at the token itself", previous: "mostly looks at the token before",
    next: "mostly looks at the token after", "first token": "mostly looks at the first token",
    separator: "mostly looks at separators", "same word": "mostly looks at other pieces of the same word",
    broad: "looks at everything about alike", mixed: "has no single habit",
  }[habit.name] || `mostly: ${habit.name}`;
  const share = habit.share ? ` (${Math.round(100 * habit.share)} %)` : "";
  const near = data.windows[layer] ? `; this layer sees ${data.windows[layer]} neighbours to each side` : "";
  return `${does}${share}; ${spread}, ${distance}${near}`;
};
