// What is below a tab: the ways to ask, the model, the form, and what came. `new page.Panel(tab, server, tell)` asks by
// itself soon after a change; what was asked before is given up, and an answer that comes too late is not shown.
"use strict";
{
const { page } = bertsmith;
const make = bertsmith.make;
const SOON = 250; // milliseconds without a change until it is asked
const SOON_PICTURE = 450; // the same where a picture is drawn

page.Panel = class {
  // known: { jobs, cards } by name; tell: { changed(panel), trouble(trouble, again), said(text) }
  constructor(tab, known, tell) {
    Object.assign(this, { tab, known, tell, way: tab.ways[0], form: null, model: "", isExplained: false, kept: new Map(), turn: 0 });
    this.ways = make("div", { class: "ways", role: "radiogroup", "aria-label": "What is asked" });
    this.models = make("div", { class: "models" });
    this.examples = make("div", { class: "examples" });
    this.place = make("div", { class: "form-place" });
    this.facts = make("p", { class: "facts quiet" });
    this.problem = make("p", { class: "problem", role: "alert" });
    this.result = make("div", { class: "result", "aria-live": tab.isPicture ? "off" : "polite" });
    this.explained = make("div", { class: "explained" });
    this.asked = make("section", { class: "sheet asked", "aria-label": "What is asked" },
      make("div", { class: "choices" }, this.ways, this.models), this.place, this.examples);
    this.came = make("section", { class: "sheet came", "aria-label": "Answer" }, this.facts, this.problem, this.result, this.explained);
    this.element = make("div", {
      id: "panel-" + tab.id, class: "panel" + (tab.isPicture ? " wide" : ""), role: "tabpanel", "aria-labelledby": "tab-" + tab.id, hidden: true,
    }, make("p", { class: "lead" }, tab.lead), make("div", { class: "columns" }, this.asked, this.came));
    this.choose(this.firstWay(), "", null);
  }

  job(way = this.way) { return this.known.jobs[way.job]; }
  can(way) { return Boolean(this.job(way)) && this.job(way).models.length > 0; }
  firstWay() { return this.tab.ways.find((way) => this.can(way)) || this.tab.ways[0]; }
  card() { return this.known.cards[this.model]; }
  mask() { return (this.card() && this.card().mask) || "[MASK]"; }

  // Where the state of the page comes from elsewhere: an address that was opened.
  restore(shared) {
    const way = this.tab.ways.find((one) => one.id === shared.way) || this.firstWay();
    this.isExplained = shared.isExplained;
    this.choose(way, shared.model, Object.keys(shared.values).length ? shared.values : null);
  }

  state() {
    const isUsual = this.model === this.usualModel();
    return {
      tab: this.tab.id, way: this.way.id || "", model: isUsual ? "" : this.model, isExplained: this.isExplained,
      values: this.form ? this.form.read() : {},
    };
  }

  usualModel(way = this.way) {
    if (!this.can(way)) return "";
    // Where a head is needed, a base whose adapters have it may not know which of them is meant.
    const isSure = (id, all) => !this.job(way).needs.head || !all.some((other) => other.startsWith(id + ":"));
    const ids = this.job(way).models.filter((id, _, all) => isSure(id, all));
    return ids.find((id) => !way.prefers || way.prefers(this.known.cards[id])) || ids[0];
  }

  choose(way, model, values) {
    if (this.form) this.kept.set(this.way, { model: this.model, values: this.form.read() });
    const before = this.kept.get(way) || {};
    this.way = way;
    const able = this.can(way) ? this.job(way).models : [];
    this.model = [model, before.model].find((id) => able.includes(id)) || this.usualModel(way);
    this.drawWays();
    this.drawModels(able);
    this.result.replaceChildren();
    this.say("", "");
    if (!able.length) return this.drawNeed();
    this.drawForm(values || before.values || null);
    return this.run();
  }

  drawWays() {
    this.ways.hidden = this.tab.ways.length < 2;
    const id = "way-" + this.tab.id;
    this.ways.replaceChildren(...this.tab.ways.map((way) => {
      const box = make("input", { type: "radio", name: id, id: `${id}-${way.id}`, checked: way === this.way, onchange: () => this.pick(way) });
      box.checked = way === this.way;
      return make("span", { class: this.can(way) ? "way" : "way lacking" }, box, make("label", { for: box.id }, way.title));
    }));
  }

  pick(way) {
    this.choose(way, "", null);
    this.tell.changed(this);
    this.ways.querySelector("input:checked").focus(); // they were drawn anew
  }

  drawModels(able) {
    this.models.hidden = able.length < 2;
    const id = "model-" + this.tab.id;
    const list = make("select", {
      id,
      onchange: () => {
        const values = this.form.read();
        this.model = list.value;
        this.drawForm(values);
        this.changed(true);
      },
    }, ...able.map((one) => make("option", { value: one }, one)));
    list.value = this.model;
    this.models.replaceChildren(make("label", { for: id }, "Model"), list);
  }

  drawNeed() {
    this.form = null;
    this.turn += 1;
    const job = this.job();
    const words = job ? job.needs.words : "This server does not know how to do that.";
    this.place.replaceChildren(make("div", { class: "need" }, make("h2", {}, "No model here can do that yet"), make("p", {}, words),
      ...(job ? [make("p", { class: "quiet" }, "This starts a server that can:"), make("pre", {}, make("code", {}, job.needs.command))] : [])));
    this.examples.replaceChildren();
    this.explained.replaceChildren();
    this.came.hidden = true;
  }

  drawForm(values) {
    this.came.hidden = false;
    this.form = page.makeForm(this.job(), this.way, this.card(), () => this.changed());
    const examples = this.listExamples();
    this.form.write(values || examples[0] || {});
    this.place.replaceChildren(this.form.element);
    if (this.way.masks) this.form.boxes.get(this.way.masks).element.append(this.makeMask());
    this.examples.replaceChildren(...(examples.length ? [make("span", { class: "quiet" }, "Try"), ...examples.map((one) => this.makeExample(one))] : []));
    this.drawExplain();
    page.growAll(this.form);
  }

  // Those of the job that this way and this model can take, as texts in boxes.
  listExamples() {
    const { boxes } = this.form;
    const needs = this.way.needs || [];
    const fits = (one) => Object.keys(one).every((name) => boxes.has(name)) && needs.every((name) => name in one);
    const found = this.job().examples.filter((one) => fits(one) && (!this.way.suits || this.way.suits(one)));
    const mask = this.mask();
    const spelt = found.map((one) => page.spell(one, this.way));
    for (const one of spelt) for (const name in one) one[name] = one[name].replaceAll("[MASK]", mask);
    const offers = (one) => (this.way.also || []).some((name) => one[name]);
    return this.way.when ? [...spelt.filter(offers), ...spelt.filter((one) => !offers(one))] : spelt;
  }

  makeExample(values) {
    const words = Object.values(values)[0].replace(/\s+/g, " ");
    const shown = values.word || (words.length > 64 ? words.slice(0, 62) + "…" : words);
    return make("button", { type: "button", class: "example", title: words, onclick: () => { this.form.write(values); this.changed(true); } }, shown);
  }

  makeMask() {
    const put = () => {
      const { box } = this.form.boxes.get(this.way.masks);
      box.setRangeText(this.mask(), box.selectionStart, box.selectionEnd, "end");
      box.focus();
      box.dispatchEvent(new Event("input", { bubbles: true }));
    };
    return make("button", { type: "button", class: "mask", onclick: put }, "Put a mask here");
  }

  put(name, text) {
    this.form.write({ ...this.form.read(), [name]: text });
    this.changed(true);
  }

  changed(isNow = false) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.tell.changed(this); this.run(); }, isNow ? 0 : this.tab.isPicture ? SOON_PICTURE : SOON);
  }

  say(problem, facts, isCut = false) {
    this.problem.textContent = problem;
    this.facts.textContent = facts;
    this.facts.classList.toggle("cut", isCut);
  }

  // What has to be written before anything can be asked.
  lacks() {
    const missing = this.form.missing();
    if (missing.length) return `Fill in: ${missing.join(", ")}.`;
    const isMasked = !this.way.masks || this.form.read()[this.way.masks].includes(this.mask());
    return isMasked ? "" : `Put a mask (${this.mask()}) where a word is to be guessed.`;
  }

  async run() {
    if (!this.form || this.element.hidden) return;
    if (this.stop) this.stop.abort();
    const turn = (this.turn += 1);
    const lacking = this.lacks();
    if (lacking) {
      this.result.replaceChildren(page.quiet(lacking));
      this.explained.hidden = true;
      this.came.removeAttribute("aria-busy");
      return this.say("", "");
    }
    this.stop = new AbortController();
    const given = this.form.given();
    this.came.setAttribute("aria-busy", "true");
    try {
      const came = await page.server.ask(this.way.job, { ...given, model: this.model }, this.stop.signal);
      if (turn !== this.turn) return;
      await this.show(came, given);
      if (this.isExplained) await this.explain(given, turn);
    } catch (trouble) {
      if (turn === this.turn && trouble.kind !== "aborted") this.fail(trouble);
    } finally {
      if (turn === this.turn) this.came.removeAttribute("aria-busy");
    }
  }

  async show({ told, costs }, given) {
    const about = { given, way: this.way, card: this.card(), put: (name, text) => this.put(name, text) };
    this.explained.hidden = !this.explained.children.length || Boolean(this.way.explains.unless && this.way.explains.unless(given));
    if (this.shownBy !== this.way.job) this.result.replaceChildren();
    this.shownBy = this.way.job;
    if (this.job().gives_picture) await page.drawPicture(this.result, told);
    else page.answers[this.way.job](this.result, told, about);
    this.say("", page.tellCosts(told, costs), costs.truncated > 0);
  }

  fail(trouble) {
    if (!(trouble instanceof page.Trouble)) throw trouble;
    this.explained.hidden = true;
    if (trouble.kind === "refused") {
      this.result.replaceChildren();
      this.say(trouble.message, "");
    }
    this.tell.trouble(trouble, () => this.run());
  }

  drawExplain() {
    const { explains } = this.way;
    const job = explains && this.known.jobs[explains.job];
    this.explained.replaceChildren();
    if (!job || !job.models.includes(this.model)) return this.widen();
    const button = make("button", {
      type: "button", class: "explain", "aria-pressed": String(this.isExplained),
      onclick: () => {
        this.isExplained = !this.isExplained;
        button.setAttribute("aria-pressed", String(this.isExplained));
        this.explained.lastElementChild.replaceChildren();
        this.widen();
        this.changed(true);
      },
    }, explains.title);
    this.explained.append(button, make("div", { class: "explanation" }));
    return this.widen();
  }

  // A picture has the whole width.
  widen() {
    this.element.classList.toggle("wide", Boolean(this.tab.isPicture || (this.isExplained && this.explained.children.length)));
  }

  async explain(given, turn) {
    const { explains } = this.way;
    if (this.explained.hidden || !this.explained.children.length) return;
    const host = this.explained.lastElementChild;
    try {
      const came = await page.server.ask(explains.job, { ...explains.given(given), model: this.model }, this.stop.signal);
      if (turn === this.turn) await page.drawPicture(host, came.told);
    } catch (trouble) {
      if (trouble.kind !== "refused") throw trouble;
      if (turn === this.turn) host.replaceChildren(make("p", { class: "problem" }, trouble.message));
    }
  }
};

page.tellCosts = (told, costs) => {
  const parts = [told.model, `${Math.max(1, Math.round(costs.seen))} ms`];
  if (costs.worked) parts[1] += ` (${costs.worked} ms in the model)`;
  if (costs.tokens) parts.push(`${costs.tokens} tokens`);
  if (costs.truncated) parts.push(`${costs.truncated} tokens were cut: the text is longer than the model reads`);
  return parts.join(" · ");
};
}
