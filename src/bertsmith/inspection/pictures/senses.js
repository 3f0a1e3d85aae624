// The uses of one word: a map of their vectors and the cosine of each two, at the layer that the slider stands on.
// Pointing at a use, in the map, in the heat map or in the list, shows its sentence and how alike the others are.
"use strict";
bertsmith.pictures.senses = (host, data, options) => {
  const { make, visible } = bertsmith;
  const count = data.uses.length;
  const state = { layer: data.layers.length - 1, use: null, other: null };
  const named = data.labels.length > 0;
  // A use that was found in the corpus has the colour of the given one that is nearest to it, as a ring.
  const colourOf = (i) => {
    if (named && i >= data.given) return colourOf(nearestGiven(i));
    const { label } = data.uses[i];
    if (named) return label === null ? 6 : (data.labels.indexOf(label) % 6) + 1;
    return (data.groups[state.layer][i] % 6) + 1;
  };
  const nearestGiven = (i) => {
    const row = data.cosines[state.layer][i].slice(0, data.given);
    return row.indexOf(Math.max(...row));
  };
  const order = data.uses.map((_, i) => i).sort((a, b) => rank(a) - rank(b) || a - b);
  function rank(i) {
    const { label } = data.uses[i];
    const last = data.groups[data.groups.length - 1];
    if (i >= data.given) return 1000;
    return named ? (label === null ? data.labels.length : data.labels.indexOf(label)) : last[i];
  }
  const low = Math.min(0.95, Math.floor(Math.min(...data.cosines.map((layer) => Math.min(...layer.map((row) => Math.min(...row))))) * 20) / 20);
  const reach = Math.max(1e-9, ...data.places.map((layer) => Math.max(...layer.map(([x, y]) => Math.max(Math.abs(x), Math.abs(y))))));

  // A sentence with the word marked; `room`: no more than so many characters around it.
  const spell = (i, room) => {
    const { text, start, end } = data.uses[i];
    const points = Array.from(text); // offsets count characters, not UTF-16 units
    const from = room ? Math.max(0, start - room) : 0, to = room ? Math.min(points.length, end + room) : points.length;
    const part = (a, b) => visible(points.slice(a, b).join(""));
    return make("bdi", {}, from ? "…" : "", part(from, start), paint(make("mark", {}, part(start, end)), i), part(end, to), to < points.length ? "…" : "");
  };
  const paint = (element, i) => { element.style.setProperty("--own", `var(--c${colourOf(i)})`); return element; };
  const cosine = (a, b) => data.cosines[state.layer][a][b];

  // The map
  const SIDE = 400, EDGE = 16;
  const at = (value) => SIDE / 2 + (value / reach) * (SIDE / 2 - EDGE);
  const dots = data.uses.map((use, i) =>
    make("circle", { class: i < data.given ? "use" : "use found", r: count > 60 ? 5 : 7.5, onpointerenter: () => choose(i, null), onclick: () => choose(i, null) },
      make("title", {}, visible(use.text))));
  const axes = make("p", { class: "quiet" });
  const map = make("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": `Map of ${count} uses` },
    make("line", { x1: SIDE / 2, x2: SIDE / 2, y1: 8, y2: SIDE - 8, stroke: "var(--rule)" }),
    make("line", { y1: SIDE / 2, y2: SIDE / 2, x1: 8, x2: SIDE - 8, stroke: "var(--rule)" }), dots);

  // The heat map: one canvas, whose cell under the pointer is worked out
  const canvas = make("canvas", { tabindex: 0, role: "application", "aria-label": "Cosine of each two uses; arrow keys walk through the cells" });
  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const pick = (value, size) => Math.min(count - 1, Math.max(0, Math.floor((value / size) * count)));
    choose(order[pick(event.clientY - box.top, box.height)], order[pick(event.clientX - box.left, box.width)]);
  };
  canvas.addEventListener("pointermove", cellAt);
  canvas.addEventListener("click", cellAt);
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const row = state.use === null ? 0 : order.indexOf(state.use), column = state.other === null ? 0 : order.indexOf(state.other);
    const clamp = (value) => Math.min(count - 1, Math.max(0, value));
    choose(order[clamp(row + by[0])], order[clamp(column + by[1])]);
  });
  // What a layer looks like is painted once; the frame around what is chosen each time.
  const painted = make("canvas");
  const paintHeat = (size) => {
    painted.width = painted.height = size;
    const pen = painted.getContext("2d"), step = size / count, gap = count <= 40 ? Math.max(1, step * 0.05) : 0;
    pen.fillStyle = bertsmith.colour(host, "--track");
    pen.fillRect(0, 0, size, size);
    pen.fillStyle = bertsmith.colour(host, "--c1");
    order.forEach((a, row) => order.forEach((b, column) => {
      pen.globalAlpha = Math.max(0, (cosine(a, b) - low) / (1 - low));
      pen.fillRect(column * step, row * step, step - gap, step - gap);
    }));
    pen.globalAlpha = 1;
    pen.lineWidth = Math.max(2, size / 200);
    let begun = 0; // a frame of its colour around each sense
    order.forEach((i, row) => {
      if (row + 1 < count && rank(order[row + 1]) === rank(i)) return;
      pen.strokeStyle = bertsmith.colour(host, i < data.given ? `--c${colourOf(i)}` : "--quiet");
      const inset = pen.lineWidth / 2, side = (row + 1 - begun) * step - 2 * inset;
      pen.strokeRect(begun * step + inset, begun * step + inset, side, side);
      begun = row + 1;
    });
  };
  const drawHeat = (isNew) => {
    const size = Math.round((canvas.clientWidth || 360) * (devicePixelRatio || 1)), step = size / count;
    if (isNew || painted.width !== size) paintHeat(size);
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const pen = canvas.getContext("2d");
    pen.drawImage(painted, 0, 0);
    if (state.use === null) return;
    pen.lineWidth = Math.min(Math.max(2, size / 200), Math.max(1, step / 3));
    pen.strokeStyle = bertsmith.colour(host, "--ink");
    const row = order.indexOf(state.use);
    if (state.other === null) pen.strokeRect(1, row * step, size - 2, step);
    else pen.strokeRect(order.indexOf(state.other) * step, row * step, step, step);
  };

  // The layer: a slider, and the course of the mean cosine over the layers
  const told = make("output", { class: "field" });
  const slider = make("input", { type: "range", class: "slide", min: 0, max: data.layers.length - 1, step: 1, value: state.layer, "aria-label": "Layer",
    oninput: () => { state.layer = Number(slider.value); draw(); } });
  const course = make("svg", { viewBox: "0 0 400 120", role: "img", "aria-label": "Mean cosine of two uses at each layer" });
  course.style.aspectRatio = "400 / 120";
  const drawCourse = () => {
    const kinds = named && data.likeness.some((one) => one.other !== null) ? { same: ["same sense", "--ink"], other: ["other senses", "--quiet"] } : { all: ["two uses", "--ink"] };
    const values = data.likeness.flatMap((one) => Object.keys(kinds).map((kind) => one[kind])).filter((value) => value !== null);
    const floor = Math.min(...values, 0.95);
    const x = (i) => 40 + (i / Math.max(1, data.layers.length - 1)) * 260, y = (value) => 100 - ((value - floor) / (1 - floor)) * 84;
    course.replaceChildren(
      make("text", { x: 34, y: 20, "text-anchor": "end" }, "1"), make("text", { x: 34, y: 104, "text-anchor": "end" }, floor.toFixed(2)),
      make("line", { x1: x(state.layer), x2: x(state.layer), y1: 8, y2: 108, stroke: "var(--quiet)", "stroke-dasharray": "3 3" }),
      ...Object.entries(kinds).flatMap(([kind, [name, colour]], number) => {
        const known = data.likeness.map((one, i) => [i, one[kind]]).filter(([, value]) => value !== null);
        if (!known.length) return [];
        const own = `var(${colour})`, last = known[known.length - 1];
        return [make("polyline", { points: known.map(([i, value]) => `${x(i)},${y(value)}`).join(" "), fill: "none", stroke: own, "stroke-width": 2.2 }),
          ...known.map(([i, value]) => make("circle", { cx: x(i), cy: y(value), r: i === state.layer ? 5 : 3, fill: own })),
          make("text", { x: x(last[0]) + 9, y: y(last[1]) + 4 + (number ? 5 : -5) }, name)];
      }));
  };
  course.addEventListener("click", (event) => {
    const box = course.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * 400 - 40) / 260;
    state.layer = Math.min(data.layers.length - 1, Math.max(0, Math.round(share * (data.layers.length - 1))));
    slider.value = state.layer;
    draw();
  });

  // The sentences
  const readout = make("div", { class: "card readout", "aria-live": "polite" });
  Object.assign(readout.style, { height: "190px", boxSizing: "border-box", overflowY: "auto" }); // what lies below must not move
  const numbers = data.uses.map(() => make("span", { class: "n" }));
  const marks = data.uses.map((_, i) => make("i", { class: i < data.given ? "dot" : "dot found" }));
  const rows = data.uses.map((use, i) => {
    const row = make("li", { tabindex: -1, onclick: () => choose(i, null), onfocus: () => choose(i, null), onpointerenter: () => choose(i, null) },
      marks[i], make("span", {}, spell(i)), numbers[i]);
    row.children[1].style.flex = "1";
    row.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      rows[order[Math.min(count - 1, Math.max(0, order.indexOf(i) + by))]].focus();
    });
    return row;
  });
  rows[order[0]].tabIndex = 0;
  const legend = make("p", { class: "legend" });
  const drawLegend = () => {
    const last = data.groups[state.layer], groups = [...new Set(last)].sort((a, b) => a - b);
    const items = named ? data.labels.map((name, i) => [name, (i % 6) + 1]) : groups.length > 1 ? groups.map((g) => [`group ${g + 1}`, (g % 6) + 1]) : [];
    const entry = ([name, colour], kind) => {
      const mark = make("i", { class: kind });
      mark.style.setProperty("--own", `var(--c${colour})`);
      return make("span", {}, mark, make("bdi", {}, visible(name)));
    };
    legend.replaceChildren(...items.map((item) => entry(item, "dot")), ...(data.given < count ? [entry([named ? "found in the corpus, in the colour of the nearest given use" : "found in the corpus", 6], "dot found")] : []));
  };

  function choose(i, other) {
    if (state.use === i && state.other === other) return;
    Object.assign(state, { use: i, other });
    drawChoice();
  }
  const tellChoice = () => {
    if (state.use === null) {
      readout.replaceChildren(make("p", { class: "quiet" }, data.layers[state.layer] === 0
        ? "Layer 0 is the word's own vector with its place in the sentence, before it has seen any neighbour: every use is nearly the same."
        : "Point at a use to see its sentence; in the heat map, at two of them."));
      return;
    }
    if (state.other !== null && state.other !== state.use) {
      readout.replaceChildren(make("p", {}, make("b", {}, cosine(state.use, state.other).toFixed(3)), " is the cosine of"),
        make("p", {}, spell(state.use)), make("p", {}, spell(state.other)));
      return;
    }
    const near = state.use < data.nearest.length ? data.nearest[state.use].map(([i]) => i)
      : order.filter((i) => i !== state.use).sort((a, b) => cosine(state.use, b) - cosine(state.use, a)).slice(0, 3);
    const { label, where } = data.uses[state.use];
    const beside = [label, where].filter((part) => part).map(visible).join(" · ");
    readout.replaceChildren(make("p", {}, spell(state.use), beside ? make("span", { class: "quiet" }, `  ${beside}`) : null),
      make("p", { class: "quiet" }, near.length ? (state.use < data.nearest.length ? "nearest in the corpus:" : "nearest:") : null),
      ...near.map((i) => make("p", { class: "quiet" }, `${cosine(state.use, i).toFixed(3)}  `, spell(i, 60))));
  };

  function drawChoice() {
    const chosen = (i) => i === state.use || i === state.other;
    dots.forEach((dot, i) => dot.classList.toggle("on", chosen(i)));
    rows.forEach((row, i) => {
      row.classList.toggle("on", chosen(i));
      numbers[i].textContent = state.use === null ? "" : cosine(state.use, i).toFixed(3);
    });
    tellChoice();
    drawHeat(false);
  }

  function draw() {
    const places = data.places[state.layer], [first, second] = data.shares[state.layer];
    dots.forEach((dot, i) => {
      paint(dot, i);
      dot.style.cx = `${at(places[i][0])}px`; // as a style it moves softly
      dot.style.cy = `${at(-places[i][1])}px`;
      dot.setAttribute("cx", at(places[i][0]));
      dot.setAttribute("cy", at(-places[i][1]));
    });
    axes.textContent = `the axes hold ${bertsmith.percent(first)} and ${bertsmith.percent(second)} of the variance`;
    marks.forEach(paint);
    rows.forEach((row, i) => row.querySelectorAll("mark").forEach((mark) => paint(mark, i)));
    const mean = data.likeness[state.layer].all;
    told.textContent = `layer ${data.layers[state.layer]}` + (mean === null ? "" : ` · mean cosine ${mean.toFixed(2)}`);
    drawLegend();
    drawCourse();
    drawHeat(true);
    drawChoice();
  }

  host.classList.add("picture");
  const found = count - data.given;
  host.replaceChildren(
    make("h1", {}, "Uses of “", make("bdi", {}, visible(data.word)), "”"),
    make("p", { class: "quiet" }, `${data.given} uses` + (found ? `, and the ${found} nearest of ${data.count.toLocaleString("en")} in the corpus` : "") +
      (data.truncated ? `; ${data.truncated} tokens of long sentences were out of reach` : "")),
    make("div", { class: "bar" }, make("label", { class: "field" }, "Layer"), slider, told), legend,
    make("div", { class: "pair" },
      make("div", { class: "card" }, make("h2", {}, "Where the uses lie"), map, axes),
      make("div", { class: "card" }, make("h2", {}, `How alike each two are: cosine, from ${low.toFixed(2)} (pale) to 1`), canvas,
        make("p", { class: "quiet" }, "one row and one column a use, in the order of the list below"))),
    make("div", { class: "pair" }, make("div", { class: "card" }, make("h2", {}, "Mean cosine by layer"), course), readout),
    make("ol", { class: "uses card", "aria-label": "The sentences" }, order.map((i) => rows[i])));
  host.children[4].style.marginTop = host.children[5].style.marginTop = "12px";
  new ResizeObserver(() => drawHeat(false)).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawHeat(true));
  draw();
};
