// What is chosen by hand above the drawing, and what is said about what the drawing shows.
bertsmith.attention.controls = (picture, change) => {
  const { data, state } = picture;
  const names = Object.fromEntries(Array.from({ length: data.layers }, (_, layer) => [layer, String(layer)]));
  if (data.rollout) names.rollout = "all (rollout)";
  const layer = bertsmith.choice("Layer", names, String(state.layer), (value) =>
    change({ layer: value === "rollout" ? value : Number(value) }));

  // While all heads are on, a click means that one alone; afterwards it adds and takes away.
  const toggle = (head) => {
    const isAll = state.chosen.length === data.heads || state.view === "neurons";
    const rest = state.chosen.filter((one) => one !== head);
    const chosen = isAll ? [head] : state.chosen.includes(head) ? rest : [...rest, head].sort((a, b) => a - b);
    change({ chosen: chosen.length ? chosen : picture.allHeads() });
  };
  const chips = picture.allHeads().map((head) => {
    const chip = bertsmith.make("button", { type: "button", class: "chip", "aria-label": `head ${head}`, title: "",
      onclick: () => toggle(head), ondblclick: () => change({ chosen: [head] }) }, String(head));
    chip.style.setProperty("--hue", bertsmith.hue(head, data.heads));
    return chip;
  });
  const all = bertsmith.make("button", { type: "button", onclick: () => change({ chosen: picture.allHeads() }) }, "all");
  const heads = bertsmith.make("div", { class: "chips", role: "group", "aria-label": "Heads" },
    bertsmith.make("span", { class: "field" }, "Heads"), chips, all);

  const hasPieces = new Set(data.words.filter((word) => word !== null)).size < data.words.filter((word) => word !== null).length;
  const merge = hasPieces
    ? bertsmith.check("whole words", state.merge, (value) => change({ merge: value, at: null, over: null })) : null;
  const hide = data.special.some(Boolean)
    ? bertsmith.check("hide special tokens", state.hide, (value) => change({ hide: value, at: null, over: null })) : null;
  const filter = data.segments.includes(1)
    ? bertsmith.choice("Sentences", { all: "both", AA: "A → A", AB: "A → B", BA: "B → A", BB: "B → B" }, state.filter,
      (value) => change({ filter: value, at: null, over: null, token: 0 })) : null;

  const update = () => {
    layer.box.value = String(state.layer);
    const isOne = state.view === "model" || state.view === "token";
    layer.element.hidden = isOne;
    heads.hidden = isOne || state.layer === "rollout";
    chips.forEach((chip, head) => {
      chip.setAttribute("aria-pressed", String(picture.heads().includes(head)));
      if (state.layer !== "rollout") chip.title = bertsmith.attention.describe(data, state.layer, head);
    });
    all.hidden = state.view === "neurons";
    if (merge) merge.hidden = state.view === "neurons";
  };
  const element = bertsmith.make("div", { class: "controls" },
    bertsmith.make("div", { class: "bar" }, layer.element, heads),
    bertsmith.make("div", { class: "bar" }, merge, hide, filter ? filter.element : null));
  return { element, update };
};

bertsmith.attention.readout = (picture) => {
  const { data, state, make = bertsmith.make } = picture;
  const element = make("div", { class: "readout card", role: "status" });
  const word = (unit) => make("b", {}, picture.shown().units[unit].label);
  const MOST = 6;

  // The strongest first: "river 41.2 %, the 12.0 %, …"
  const list = (weights, places) => {
    const order = places.map((unit) => [weights[unit], unit]).sort((a, b) => b[0] - a[0]).slice(0, MOST);
    return order.filter(([weight]) => weight > 0).flatMap(([weight, unit], place) =>
      [place ? ", " : "", word(unit), ` ${bertsmith.percent(weight)}`]);
  };
  const where = () => {
    if (state.layer === "rollout") return "Rollout: how much of each input is in a word's last state, if attention alone mixed them.";
    const chosen = picture.heads();
    if (chosen.length > 1) return `Layer ${state.layer}, the mean of ${chosen.length} heads.`;
    return `Layer ${state.layer}, head ${chosen[0]}: ${bertsmith.attention.describe(data, state.layer, chosen[0])}.`;
  };
  const sayWord = () => {
    const { rows, columns } = picture.sides();
    const { at, side, over } = state;
    if (at === null) return ["Point at a word, or walk with the arrow keys, to see what it looks at."];
    if (side === "to") {
      const weights = new Float32Array(picture.shown().units.length);
      rows.forEach((unit) => { weights[unit] = picture.mean(unit)[columns[at]]; });
      return [word(columns[at]), " is looked at by ", ...list(weights, rows)];
    }
    const weights = picture.mean(rows[at]);
    if (over !== null) return [word(rows[at]), " → ", word(columns[over]), `: ${bertsmith.percent(weights[columns[over]])}`];
    return [word(rows[at]), " looks at ", ...list(weights, columns)];
  };
  const sayToken = (view) => {
    const { columns } = picture.sides();
    if (!state.spot) return [[word(view.unit()), " through all heads: point at a square."], "A click on a word takes that word."];
    const [layer, head, place] = state.spot;
    const weight = bertsmith.percent(view.weight(state.spot));
    return [[word(view.unit()), " → ", word(columns[place]), `: ${weight} in layer ${layer}, head ${head}`],
      `Layer ${layer}, head ${head}: ${bertsmith.attention.describe(data, layer, head)}.`];
  };
  const say = (view) => {
    if (state.view === "model") {
      const [layer, head] = state.cell;
      const does = bertsmith.attention.describe(data, layer, head);
      return [[make("b", {}, `Layer ${layer}, head ${head}`)], `${does}. A click or Enter opens it.`];
    }
    if (state.view === "token") return sayToken(view);
    if (state.view === "neurons") {
      const weights = picture.row(picture.heads()[0], view.unit()), { columns } = picture.sides();
      const score = state.line === null || state.line >= columns.length ? null : view.score(state.line);
      if (score !== null) {
        const to = columns[state.line], sum = (score * Math.sqrt(view.size)).toFixed(2);
        return [[word(view.unit()), " → ", word(to), `: weight ${bertsmith.percent(weights[to])}`],
          `Layer ${state.layer}, head ${picture.heads()[0]}: the products add up to ${sum}; divided by √${view.size} ` +
          `that is ${score.toFixed(2)}, of which the softmax makes the weight.`];
      }
      return [[word(view.unit()), " looks at ", ...list(weights, picture.sides().columns)],
        `Layer ${state.layer}, head ${picture.heads()[0]}. A click on a word takes its query.`];
    }
    const full = view.most ? ` Full colour is ${bertsmith.percent(view.most())}.` : "";
    return [sayWord(), where() + full];
  };
  const update = (view) => {
    const [first, second] = say(view);
    element.replaceChildren(make("p", {}, first), make("p", { class: "quiet" }, second));
  };
  return { element, update };
};
