// What is on the page as an address: `#TAB/WAY?model=ID&FIELD=VALUE…`. Whoever opens it sees the same and gets it answered.
"use strict";
{
const { page } = bertsmith;
const LONGEST = 30000; // letters of an address that others can be sent

page.sharing = {
  // { tab, way, model, isExplained, values }; no values: nothing was shared, the first example is shown
  read(hash) {
    const [path, query] = splitOnce(hash.replace(/^#/, ""), "?");
    const [tab, way] = splitOnce(path, "/");
    const given = new URLSearchParams(query);
    const values = {};
    for (const [name, value] of given) if (!["model", "explained"].includes(name)) values[name] = value;
    return { tab, way, model: given.get("model") || "", isExplained: given.has("explained"), values };
  },

  // Without what was written where that is too long for an address.
  write({ tab, way, model, isExplained, values }) {
    const given = new URLSearchParams();
    if (model) given.set("model", model);
    for (const [name, value] of Object.entries(values)) if (value !== "") given.set(name, value);
    if (isExplained) given.set("explained", "1");
    const query = given.toString();
    if (query.length > LONGEST) return "#" + tab + (way ? "/" + way : "");
    return "#" + tab + (way ? "/" + way : "") + (query ? "?" + query : "");
  },
};

function splitOnce(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
}
