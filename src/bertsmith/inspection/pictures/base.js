// What every picture is made with. A picture of kind K is `bertsmith.pictures[K] = (host, data, options) => { ... }`:
// it fills an empty element with what the numbers show. Texts become text nodes and never markup. Where a kind has parts,
// they are in files K_….js, which are read after K.js.
"use strict";
var bertsmith = { pictures: {} };

// An element: make("button", { class: "chip", onclick: act, "aria-label": "…" }, "text", child, …)
bertsmith.make = (name, attributes, ...children) => {
  const svg = "http://www.w3.org/2000/svg";
  const isDrawn = ["svg", "g", "line", "path", "rect", "circle", "text", "title", "polyline"].includes(name);
  const element = isDrawn ? document.createElementNS(svg, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};

// Numbers that packing.py has packed. `unpackPart(packed, i)` gives those of one of its texts as they are kept: bytes,
// which `steps(packed)` turns into weights, or floats. `unpack(packed)` gives all as one Float32Array.
bertsmith.unpackPart = async (packed, part) => {
  const text = packed.data[part];
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = await new Response(stream).arrayBuffer();
  if (packed.encoding === "roots") return new Uint8Array(raw);
  if (packed.encoding === "float32") return new Float32Array(raw);
  return Float32Array.from(new Uint16Array(raw), bertsmith.readHalf);
};

// What each byte of a packed array stands for; null where floats are kept.
bertsmith.steps = (packed) =>
  packed.encoding === "roots" ? Float32Array.from({ length: 256 }, (_, code) => (code / packed.levels) ** 2) : null;

bertsmith.unpack = async (packed) => {
  const whole = packed.shape.reduce((a, b) => a * b, 1), size = whole / packed.data.length;
  const steps = bertsmith.steps(packed);
  const values = new Float32Array(whole);
  for (let part = 0; part < packed.data.length; part++) {
    const kept = await bertsmith.unpackPart(packed, part);
    values.set(steps ? Float32Array.from(kept, (code) => steps[code]) : kept, part * size);
  }
  return values;
};

// A 16-bit float as browsers without Float16Array read it.
bertsmith.readHalf = (bits) => {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024);
  return bits & 0x8000 ? -size : size;
};

// Marks for what would be seen as nothing, or would turn the text around it.
bertsmith.visible = (text) =>
  text.replace(/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (sign) => {
    if (sign === " ") return sign;
    const code = sign.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : `[U+${code.toString(16).toUpperCase().padStart(4, "0")}]`;
  });

bertsmith.percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;

// What a variable of look.css stands for here and now.
bertsmith.colour = (host, name) => getComputedStyle(host).getPropertyValue(name).trim();

// One of `count` colours that are as far from each other as they can be, light or dark as the page is.
bertsmith.hue = (index, count) => Math.round((210 + (360 * index) / Math.max(count, 1)) % 360);
bertsmith.tint = (host, index, count) => `hsl(${bertsmith.hue(index, count)} 62% ${bertsmith.colour(host, "--tint")})`;

// Names of which one is chosen. Arrow keys walk through them, as tab lists do elsewhere.
bertsmith.tabs = (label, names, chosen, onpick) => {
  const keys = Object.keys(names);
  const pick = (key, isFocused) => {
    keys.forEach((other, i) => {
      buttons[i].setAttribute("aria-selected", String(other === key));
      buttons[i].tabIndex = other === key ? 0 : -1;
    });
    if (isFocused) buttons[keys.indexOf(key)].focus();
    onpick(key);
  };
  const walk = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, Home: -keys.length, End: keys.length }[event.key];
    if (!by) return;
    event.preventDefault();
    const at = buttons.indexOf(event.currentTarget) + by;
    pick(keys[Math.abs(by) > 1 ? Math.min(Math.max(at, 0), keys.length - 1) : (at + keys.length) % keys.length], true);
  };
  const buttons = keys.map((key) =>
    bertsmith.make("button", { role: "tab", type: "button", class: "tab", "data-key": key, "aria-selected": String(key === chosen),
      tabindex: key === chosen ? 0 : -1, onclick: () => pick(key), onkeydown: walk }, names[key]));
  const element = bertsmith.make("div", { role: "tablist", class: "tabs", "aria-label": label }, buttons);
  return { element, pick };
};

bertsmith.check = (label, isOn, onchange) => {
  const box = bertsmith.make("input", { type: "checkbox", onchange: () => onchange(box.checked) });
  box.checked = isOn;
  return bertsmith.make("label", { class: "field" }, box, label);
};

bertsmith.choice = (label, names, chosen, onchange) => {
  const options = Object.entries(names).map(([key, name]) => bertsmith.make("option", { value: key }, name));
  const box = bertsmith.make("select", { onchange: () => onchange(box.value) }, options);
  box.value = chosen;
  const element = bertsmith.make("label", { class: "field" }, label, box);
  return { element, box };
};

// One canvas for drawings of any height: as tall as its window, and what is drawn is the part that is scrolled to.
// `view()` gives { height(width), paint(pen, width, top, height) } of now; places are those in the whole drawing.
bertsmith.stage = (label, view, on) => {
  const canvas = bertsmith.make("canvas", { "aria-hidden": "true" });
  const roll = bertsmith.make("div", { class: "roll" }, canvas);
  const element = bertsmith.make("div", { class: "stage", tabindex: 0, role: "application", "aria-label": label }, roll);
  let waiting = 0;
  const paint = () => {
    waiting = 0;
    const width = element.clientWidth;
    if (!width) return;
    const whole = Math.ceil(view().height(width));
    roll.style.height = `${whole}px`;
    const height = Math.min(whole, Math.max(320, Math.round(innerHeight * 0.72)));
    element.style.height = `${height}px`;
    const sharp = devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * sharp)) canvas.width = Math.round(width * sharp);
    if (canvas.height !== Math.round(height * sharp)) canvas.height = Math.round(height * sharp);
    const pen = canvas.getContext("2d");
    const top = element.scrollTop;
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.translate(0, -top);
    view().paint(pen, width, top, height);
  };
  const repaint = () => { if (!waiting) waiting = requestAnimationFrame(paint); };
  const place = (event) => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + element.scrollTop];
  };
  element.addEventListener("scroll", repaint, { passive: true });
  element.addEventListener("pointermove", (event) => on.move(...place(event)));
  element.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && on.leave());
  element.addEventListener("click", (event) => on.press(...place(event)));
  element.addEventListener("keydown", on.key);
  new ResizeObserver(repaint).observe(element);
  element.repaint = repaint;
  // So that what lies between these heights is in the window.
  const reveal = (from, to) => {
    if (from < element.scrollTop) element.scrollTop = from;
    else if (to > element.scrollTop + element.clientHeight) element.scrollTop = to - element.clientHeight;
  };
  return { element, repaint, reveal };
};

// Heard once for all stages, so that one that was taken off a page is forgotten with its numbers.
bertsmith.repaintAll = () => { for (const stage of document.querySelectorAll(".stage")) if (stage.repaint) stage.repaint(); };
addEventListener("resize", bertsmith.repaintAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", bertsmith.repaintAll);

// A text on a canvas that takes no more than `width`.
bertsmith.fit = (pen, text, width) => {
  if (text.length * 14 <= width || pen.measureText(text).width <= width) return text;
  let kept = text.slice(0, 60);
  while (kept && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return `${kept}…`;
};

// Numbers as coloured cells, `columns` in a line: blue above zero, orange below, full colour at `limit`. The colours have a
// transparency in place of white, so that they serve light and dark. `tell(i)` hears which cell is pointed at, or null.
bertsmith.cells = (values, { columns = values.length, limit = 0, label = "", tell = null }) => {
  const rows = Math.ceil(values.length / columns), most = limit || values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const canvas = bertsmith.make("canvas", { class: "cells", width: columns, height: rows, role: "img", "aria-label": label });
  const pen = canvas.getContext("2d"), image = pen.createImageData(columns, rows);
  for (let i = 0; i < values.length; i++) {
    image.data.set(values[i] >= 0 ? [47, 129, 205] : [222, 112, 34], 4 * i);
    image.data[4 * i + 3] = Math.min(255, Math.round((255 * Math.abs(values[i])) / most));
  }
  pen.putImageData(image, 0, 0);
  if (tell) {
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const column = Math.min(columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * columns)));
      const row = Math.min(rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * rows)));
      tell(row * columns + column < values.length ? row * columns + column : null);
    });
    canvas.addEventListener("pointerleave", () => tell(null));
  }
  return canvas;
};

// Of a page saved as a file: reads the numbers and draws them.
bertsmith.show = (host, source) => {
  host.classList.add("picture");
  bertsmith.pictures[host.dataset.kind](host, JSON.parse(source.textContent), {});
};
