// A form made from a job's fields. `page.makeForm(job, way, card, onchange)` gives { element, read, write, missing }:
// `read()` the texts in its boxes by field (what is shared), `given()` the same as the job takes them.
"use strict";
{
const { page } = bertsmith;
const NAMES = {
  a: "First text", b: "Second text", pair: "Second text", top_k: "How many answers", others: "Other texts",
  answer_length: "Longest answer, in tokens", targets: "Words to choose from", labels: "Labels of your own",
  truncate: "What is too long", how: "Search by", raw: "Raw scores", apply: "Scores by", causal: "Only look back",
};

page.nameField = (field, way) => {
  const plain = field.name.charAt(0).toUpperCase() + field.name.slice(1).replaceAll("_", " ");
  return (way.names && way.names[field.name]) || NAMES[field.name] || plain;
};

// Several texts in one box: a paragraph each where an empty line parts them, else a line each.
page.splitTexts = (text) => {
  const mark = /\n[ \t]*\n/.test(text.trim()) ? /\n[ \t]*\n/ : /\n/;
  return text.split(mark).map((one) => one.trim()).filter(Boolean);
};

page.makeForm = (job, way, card, onchange) => {
  const boxes = new Map(); // by the field's name
  const isShown = (field) => !(way.hides || []).includes(field.name) && (!way.when || !way.when[field.name] || way.when[field.name](card));
  const isFirst = (field) => field.required || (way.also || []).includes(field.name);
  const isNeeded = (field) => field.required || (way.needs || []).includes(field.name);
  const shown = job.fields.filter(isShown);

  const build = (field) => {
    const made = makeBox(field, way, isNeeded(field));
    boxes.set(field.name, { field, ...made });
    made.box.addEventListener("input", () => onchange(field.name));
    return made.element;
  };
  const firsts = shown.filter(isFirst).map(build);
  const others = shown.filter((field) => !isFirst(field)).map(build);
  const more = others.length
    ? bertsmith.make("details", { class: "more" }, bertsmith.make("summary", {}, "Options"), bertsmith.make("div", { class: "options" }, ...others))
    : null;
  const element = bertsmith.make("form", { class: "form", onsubmit: (event) => event.preventDefault() }, ...firsts, more);

  return {
    element,
    boxes,
    read: () => Object.fromEntries([...boxes].map(([name, { get }]) => [name, get()])),
    write: (values) => {
      for (const [name, { set }] of boxes) set(values[name] === undefined ? "" : values[name]);
      if (more) more.open = others.length > 0 && shown.some((field) => !isFirst(field) && values[field.name]);
    },
    missing: () => {
      const lacking = shown.filter((field) => isNeeded(field) && !boxes.get(field.name).get().trim());
      return lacking.map((field) => page.nameField(field, way));
    },
    given: () => Object.fromEntries(
      [...boxes].filter(([, { get }]) => get().trim() !== "").map(([name, { field, get }]) => [name, take(field, way, get())]),
    ),
  };
};

// What stands in a box, as the job takes it.
function take(field, way, text) {
  if (field.kind === "texts") return (way.alone || []).includes(field.name) ? [text] : page.splitTexts(text);
  if (field.kind === "count" || field.kind === "place") return Number(text);
  if (field.kind === "flag") return text === "yes";
  if (field.kind === "numbers") return text.split(/[\s,]+/).filter(Boolean).map(Number);
  return text;
}

// An example's fields as they stand in boxes.
page.spell = (example, way) => Object.fromEntries(
  Object.entries(example).map(([name, value]) => {
    if (Array.isArray(value)) return [name, (way.alone || []).includes(name) ? String(value[0]) : value.join("\n")];
    return [name, typeof value === "boolean" ? (value ? "yes" : "") : String(value)];
  }),
);

let made = 0;

function makeBox(field, way, isNeeded) {
  const make = bertsmith.make;
  const id = `field-${field.name}-${(made += 1)}`;
  const name = page.nameField(field, way);
  const isList = field.kind === "texts" && !(way.alone || []).includes(field.name);
  // A name and a box say it already where the help is no longer than that.
  const words = field.help.split(" ").length < 4 ? "" : field.help;
  const help = (words + (isList ? " One a line, or with empty lines between them." : "")).trim();
  if (field.kind === "flag") {
    const box = make("input", { id, type: "checkbox", "aria-describedby": id + "-help" });
    const element = make("div", { class: "entry flag" }, box, make("label", { for: id }, name), make("small", { id: id + "-help" }, help));
    return { element, box, get: () => (box.checked ? "yes" : ""), set: (text) => (box.checked = text === "yes") };
  }
  const box = makeInput(field, id, isList, [...SHORT, ...(way.short || [])].includes(field.name));
  box.setAttribute("aria-describedby", id + "-help");
  if (isNeeded) box.setAttribute("aria-required", "true");
  const element = make("div", { class: `entry ${field.kind}` }, make("label", { for: id }, name), box, make("small", { id: id + "-help" }, help));
  const set = (text) => {
    box.value = text;
    grow(box);
  };
  box.addEventListener("input", () => grow(box));
  return { element, box, get: () => box.value, set };
}

const SHORT = ["word", "query", "question", "hypothesis"];

function makeInput(field, id, isList, isShort) {
  const make = bertsmith.make;
  if (field.kind === "choice") {
    const first = make("option", { value: "" }, "as the model does");
    return make("select", { id }, field.required ? null : first, ...field.choices.map((one) => make("option", { value: one }, one)));
  }
  if (field.kind === "count" || field.kind === "place") {
    return make("input", { id, type: "number", min: field.kind === "count" ? 1 : 0, max: field.most, step: 1, inputmode: "numeric" });
  }
  if (field.kind === "numbers" || isShort) return make("input", { id, type: "text", autocomplete: "off" });
  return make("textarea", { id, rows: isList ? 4 : 2, spellcheck: "false", autocapitalize: "off" });
}

// A box as high as its text, up to a point.
function grow(box) {
  if (box.tagName !== "TEXTAREA") return;
  box.style.height = "auto";
  if (box.scrollHeight) box.style.height = Math.min(box.scrollHeight + 2, 320) + "px";
}
page.growAll = (form) => form.boxes.forEach(({ box }) => grow(box));
}
