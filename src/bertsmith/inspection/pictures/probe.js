// What each layer knows: bars of a probe's accuracy with their intervals, the control's beside them, and the learned mix.
"use strict";
bertsmith.pictures.probe = (host, data, options) => {
  const { make, percent } = bertsmith;
  const bar = (value, colour, low, high) => {
    const fill = make("i"), track = make("div", { class: "gauge probe-gauge" }, fill);
    track.style.setProperty("--own", `var(--${colour})`);
    fill.style.width = `${100 * value}%`;
    if (low !== undefined) {
      const spread = make("b");
      spread.style.left = `${100 * low}%`;
      spread.style.width = `${Math.max(100 * (high - low), 0.4)}%`;
      track.append(spread);
    }
    return track;
  };
  const best = data.layers.reduce((a, one) => (one.accuracy > a.accuracy ? one : a)); // of equals the first
  const rows = data.layers.map((one, layer) => make("tr", { class: one === best ? "best" : null },
    make("th", { scope: "row" }, layer ? `layer ${layer}` : "embedding"),
    make("td", { class: "bars" }, bar(one.accuracy, "c1", one.low, one.high), bar(one.control, "c6")),
    make("td", { class: "n" }, percent(one.accuracy)), make("td", { class: "n hide-small" }, `${percent(one.low)} – ${percent(one.high)}`),
    make("td", { class: "n hide-small" }, percent(one.macro_f1)), make("td", { class: "n hide-small" }, percent(one.selectivity)),
    make("td", { class: "n" }, percent(data.mix.shares[layer]))));
  const mixed = make("tr", {}, make("th", { scope: "row" }, "all, mixed"), make("td", { class: "bars" }, bar(data.mix.accuracy, "c3", data.mix.low, data.mix.high)),
    make("td", { class: "n" }, percent(data.mix.accuracy)), make("td", { class: "n hide-small" }, `${percent(data.mix.low)} – ${percent(data.mix.high)}`),
    make("td", { class: "n hide-small" }, percent(data.mix.macro_f1)), make("td", { class: "hide-small" }), make("td"));
  const most = make("tr", {}, make("th", { scope: "row" }, "majority"), make("td", { class: "bars" }, bar(data.majority, "c5")),
    make("td", { class: "n" }, percent(data.majority)), make("td", { class: "hide-small" }), make("td", { class: "hide-small" }), make("td", { class: "hide-small" }), make("td"));
  const heads = [["", ""], ["probe, and below it the control", ""], ["accuracy", "n"], ["95 % interval", "n hide-small"], ["macro F1", "n hide-small"],
    ["selectivity", "n hide-small"], ["share in mix", "n"]];
  host.classList.add("picture");
  host.replaceChildren(
    make("h1", {}, `What each layer knows: ${data.task}`),
    make("p", { class: "quiet" }, `A linear probe on each layer: ${data.train.toLocaleString("en")} ${data.items} to learn from, ` +
      `${data.dev.toLocaleString("en")} to test on, ${data.labels.length} labels. The control has labels that mean nothing: what a probe knows ` +
      "beyond it (selectivity) comes from the layer, not from the probe's memory."),
    make("div", { class: "card wide heads-box" }, make("table", { class: "bars probe" },
      make("thead", {}, make("tr", {}, heads.map(([name, style]) => make("th", { scope: "col", class: style || null }, name)))),
      make("tbody", {}, rows, mixed, most))));
};
