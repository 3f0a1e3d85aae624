// What pointer and keys do to the picture.
bertsmith.attention.actions = (picture, { change, view, reveal, width, open }) => {
  const { data, state } = picture;
  const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);
  const isPointing = () => state.view === "lines" || state.view === "matrix";

  // The word that is found under the pointer is kept for the views that always have one.
  const take = (found) => {
    const isSame = Object.entries(found).every(([key, value]) => String(state[key]) === String(value));
    if (isSame) return;
    Object.assign(state, found);
    if (found.at !== null && found.at !== undefined && state.side === "from") state.token = found.at;
    picture.repaint();
  };
  const move = (x, y) => {
    if (isPointing() && state.isKept) return;
    const { name, ...found } = view().pick(x, y, width());
    take(found);
  };
  const leave = () => take(isPointing() ? (state.isKept ? {} : { at: null, over: null }) : { spot: null, line: null });

  const press = (x, y) => {
    const { name, ...found } = view().pick(x, y, width());
    if (state.view === "model" && found.cell) openCell(found.cell);
    else if (isPointing()) {
      const isSame = found.at === state.at && (found.side || state.side) === state.side && (found.over ?? null) === state.over;
      const isAgain = state.isKept && isSame;
      state.isKept = found.at !== null && !isAgain;
      take(found);
    } else if (name !== null && name !== undefined) {
      const place = picture.sides().rows.indexOf(picture.sides().columns[name]);
      if (place >= 0) take({ token: place, spot: null });
    } else take(found);
  };
  const openCell = ([layer, head]) => {
    Object.assign(state, { layer, chosen: [head] });
    open("lines");
  };

  const walkModel = (by, isDown) => {
    const [layer, head] = state.cell;
    const cell = isDown ? [clamp(layer + by, data.layers), head] : [layer, clamp(head + by, data.heads)];
    take({ cell });
    reveal(...view().bounds(cell[0], width()));
  };
  const walkWord = (by) => {
    const { rows, columns } = picture.sides();
    if (!isPointing()) {
      const token = clamp(state.token + by, rows.length);
      take({ token, spot: null });
      reveal(...view().bounds(columns.indexOf(rows[token]), width()));
      return;
    }
    const places = state.side === "from" ? rows : columns;
    const at = state.at === null ? (by > 0 ? 0 : places.length - 1) : clamp(state.at + by, places.length);
    state.isKept = true;
    take({ at, over: null });
    reveal(...view().bounds(at, width()));
  };
  const walkLayer = (by) => {
    if (state.layer === "rollout") change({ layer: data.layers - 1 });
    else change({ layer: clamp(state.layer + by, data.layers) });
  };
  const walkHead = (by) => {
    if (state.layer === "rollout" || state.view === "token") return;
    const heads = picture.heads();  // from several to the first or the last of all
    change({ chosen: [heads.length > 1 ? (by > 0 ? 0 : data.heads - 1) : (heads[0] + by + data.heads) % data.heads] });
  };

  const key = (event) => {
    const by = { ArrowUp: -1, ArrowLeft: -1, PageUp: -1, ArrowDown: 1, ArrowRight: 1, PageDown: 1 }[event.key];
    if (event.key === "Escape" && isPointing()) { state.isKept = false; take({ at: null, over: null }); return; }
    if (event.key === "Enter" && state.view === "model") { event.preventDefault(); openCell(state.cell); return; }
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const isDown = event.key === "ArrowUp" || event.key === "ArrowDown";
    if (state.view === "model") walkModel(by, isDown || event.key.startsWith("Page"));
    else if (event.shiftKey || event.key.startsWith("Page")) walkLayer(by);
    else if (isDown) walkWord(by);
    else walkHead(by);
  };
  return { move, leave, press, key };
};
