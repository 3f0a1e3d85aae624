// Attention, all of it: lines, all heads, one word through all heads, a matrix, and numbers behind a weight.
bertsmith.attention = {};  // its parts, in the files attention_….js

bertsmith.pictures.attention = (host, data, options) => {
  const { make } = bertsmith;
  const reader = bertsmith.attention.reader(data);
  const allHeads = () => Array.from({ length: data.heads }, (_, head) => head);
  const state = {
    view: "lines", layer: 0, chosen: allHeads(), merge: false, hide: false, filter: "all",
    at: null, side: "from", over: null, isKept: false,  // the word that is looked at, in which column, and whether it was clicked
    token: 0, cell: [0, 0], spot: null, line: null,
  };
  Object.assign(state, data.start || {});

  let colours = new Map(), shownNow = { key: null };
  const picture = {
    data, reader, state, make, allHeads,
    colour: (name) => {
      if (!colours.has(name)) colours.set(name, bertsmith.colour(host, name));
      return colours.get(name);
    },
    tint: (head) => (state.layer === "rollout" ? picture.colour("--c1")
      : `hsl(${bertsmith.hue(head, data.heads)} 62% ${picture.colour("--tint")})`),
    heads: () => (state.layer === "rollout" ? [0] : state.view === "neurons" ? state.chosen.slice(0, 1) : state.chosen),
    isMerged: () => state.merge && state.view !== "neurons",
    isPlain: () => !picture.isMerged() && !state.hide && state.filter === "all",
    shownKey: () => `${picture.isMerged()} ${state.hide} ${state.filter}`,
    key: () => `${picture.shownKey()} ${state.layer} ${picture.heads()} ${reader.isLoaded(state.layer)}`,
    shown: () => prepare().shown,
    sides: () => prepare().sides,
    row: (head, unit) => reader.row(state.layer, head, unit, picture.shown()),
    mean: (unit) => {
      const heads = picture.heads(), sum = new Float32Array(picture.shown().units.length);
      for (const head of heads) picture.row(head, unit).forEach((weight, to) => { sum[to] += weight / heads.length; });
      return sum;
    },
    loadedCount: () => data.weights.data.filter((_, layer) => reader.isLoaded(layer)).length,
    repaint: () => stage.repaint(),
  };
  const prepare = () => {
    const key = picture.shownKey();
    if (shownNow.key !== key) {
      const shown = reader.units(picture.isMerged(), state.hide);
      shownNow = { key, shown, sides: bertsmith.attention.sides(shown, state.filter) };
    }
    return shownNow;
  };

  const views = { lines: bertsmith.attention.lines(picture), model: bertsmith.attention.model(picture),
    token: bertsmith.attention.token(picture), matrix: bertsmith.attention.matrix(picture) };
  const names = { lines: "Lines", model: "All heads", token: "One word", matrix: "Matrix" };
  if (data.queries && data.keys) {
    views.neurons = bertsmith.attention.neurons(picture);
    names.neurons = "Neurons";
  }
  const view = () => views[state.view];
  const current = {
    height: (width) => view().height(width),
    paint: (...place) => {
      colours = new Map();
      view().paint(...place);
      readout.update(view());
    },
  };

  // Everything that changes goes through here: the numbers that it needs are unpacked, then it is drawn.
  const change = async (changes) => {
    Object.assign(state, changes);
    if (state.view === "neurons" && state.layer === "rollout") state.layer = 0;
    const { view: shown, layer: at, chosen, merge, hide, filter } = state;
    if (options && options.onstate) options.onstate({ view: shown, layer: at, chosen, merge, hide, filter });
    controls.update();
    stage.repaint();
    try {
      for (const layer of view().needs ? view().needs() : [state.layer]) {
        if (view().load) await view().load(layer);
        if (reader.isLoaded(layer)) continue;
        await reader.load(layer);
        stage.repaint();
      }
      stage.repaint();
      host.dataset.ready = "true";
    } catch (error) {
      readout.element.replaceChildren(`These numbers cannot be unpacked here (${error.message}); a newer browser can.`);
      throw error;
    }
  };

  const actions = bertsmith.attention.actions(picture, { change, view, reveal: (...place) => stage.reveal(...place),
    width: () => stage.element.clientWidth, open: (key) => tabs.pick(key) });
  const controls = bertsmith.attention.controls(picture, change);
  const readout = bertsmith.attention.readout(picture);
  const keys = "attention; up and down choose a word, left and right a head, with shift a layer";
  const stage = bertsmith.stage(keys, () => current, actions);
  const tabs = bertsmith.tabs("Views", names, state.view, (key) => change({ view: key, isKept: false, over: null, spot: null }));
  const lost = data.truncated ? `; ${data.truncated.toLocaleString("en")} tokens did not fit and were not read` : "";
  const causal = data.causal ? ", each word sees only those before it" : "";
  const press = (name) => make("kbd", {}, name);
  const help = make("p", { class: "quiet hide-small" }, "A click keeps a word. Keys: ", press("↑"), " ", press("↓"), " word, ",
    press("←"), " ", press("→"), " head, with ", press("Shift"), " layer, ", press("Esc"), " none.");
  host.classList.add("picture");
  host.replaceChildren(make("h1", {}, bertsmith.visible(data.title)),
    make("p", { class: "quiet" }, `${data.pieces.length} tokens, ${data.layers} layers, ${data.heads} heads${causal}${lost}`),
    tabs.element, controls.element, readout.element, make("div", { class: "card" }, stage.element), help);
  change({});
};
