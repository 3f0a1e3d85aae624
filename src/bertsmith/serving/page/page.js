// The page itself: tabs, the address that is shared, keys, and a server that may be gone for a while.
"use strict";
{
const { page } = bertsmith;
const make = bertsmith.make;
const byId = (id) => document.getElementById(id);
const panels = new Map(); // by the tab's id
const known = { jobs: {}, cards: {} };
let open = null; // the panel that is shown
let waiting = null; // what asks again while the server is gone

// Scripts of pictures come when the first picture of their kind does.
const scripts = new Map();
const memories = new Map(); // of pictures: what was chosen in the last one of a kind, so that the next begins there
function loadScript(kind) {
  if (bertsmith.pictures[kind]) return Promise.resolve();
  if (!scripts.has(kind)) {
    scripts.set(kind, new Promise((done, fail) => {
      const script = make("script", { src: `page/picture_${encodeURIComponent(kind)}.js`, onload: () => done() });
      script.addEventListener("error", () => {
        scripts.delete(kind);
        fail(new page.Trouble("gone", "The server does not answer."));
      });
      document.head.append(script);
    }));
  }
  return scripts.get(kind);
}

page.drawPicture = async (host, { kind, title, data, svg }) => {
  if (svg) {
    const image = make("img", { class: "still", alt: title, src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg) });
    return host.replaceChildren(make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, image));
  }
  await loadScript(kind);
  const place = make("div", { class: `picture ${kind}`, "data-kind": kind });
  host.style.minHeight = host.offsetHeight + "px"; // lest the page jumps while one picture takes another's place
  host.replaceChildren(place);
  const key = [kind, data.layers, data.heads, Boolean(data.queries), Boolean(data.rollout)].join();
  const start = memories.has(key) ? { start: { ...data.start, ...memories.get(key) } } : {};
  await bertsmith.pictures[kind](place, { ...data, ...start }, { onstate: (state) => memories.set(key, state) });
  requestAnimationFrame(() => requestAnimationFrame(() => { host.style.minHeight = ""; }));
  return undefined;
};

const tell = {
  changed: (panel) => { if (panel === open) history.replaceState(null, "", page.sharing.write(panel.state())); },
  trouble: (trouble, again) => {
    if (trouble.kind === "key") askKey(trouble.message, again);
    else if (trouble.kind === "gone") waitForServer(again);
    else if (trouble.kind === "busy") {
      showBanner(`${trouble.message} Asking again in ${trouble.seconds} s.`);
      clearTimeout(waiting);
      waiting = setTimeout(() => { showBanner(""); again(); }, 1000 * trouble.seconds);
    }
  },
};

function showBanner(text) {
  byId("banner").textContent = text;
  byId("banner").hidden = !text;
}

function waitForServer(again, pause = 1000) {
  showBanner("The server does not answer. Trying again…");
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    if (!(await page.server.isReady())) return waitForServer(again, Math.min(pause * 1.5, 5000));
    showBanner("");
    return panels.size ? refresh(again) : again();
  }, pause);
}

// Adapters are counted behind their base, as every list of models names them.
function nameModels(ids) {
  const count = (id) => ids.filter((other) => other.startsWith(id + ":")).length;
  const tell = (id) => (count(id) ? `${id} with ${count(id)} adapter${count(id) > 1 ? "s" : ""}` : id);
  return ids.filter((id) => !ids.includes(id.split(":")[0]) || !id.includes(":")).map(tell).join(", ");
}

// A server that comes back may hold other models; the address brings back what was on the page.
async function refresh(again) {
  try {
    const { told } = await page.server.list();
    const ids = told.models.map((card) => card.id).join("\n");
    return ids === Object.keys(known.cards).join("\n") ? again() : location.reload();
  } catch (trouble) {
    return tell.trouble(trouble, again);
  }
}

let useKey = null;
function askKey(message, again) {
  const isWrong = page.server.hasKey();
  page.server.keep("");
  byId("forget").hidden = true;
  byId("keys-problem").textContent = isWrong ? "The server did not take that key." : "";
  byId("key").value = "";
  useKey = again;
  if (!byId("keys").open) byId("keys").showModal();
}

function takeKey(event) {
  event.preventDefault();
  page.server.keep(byId("key").value.trim());
  byId("forget").hidden = false;
  byId("keys").close();
  showBanner("");
  useKey();
}

function refuseKey() {
  byId("keys").close();
  showBanner("This server answers only who has a key. ");
  byId("banner").append(make("button", { type: "button", onclick: () => askKey("", useKey) }, "Enter a key"));
}

function drawTabs() {
  byId("tabs").replaceChildren(...page.tabs.map((tab) => {
    const isAble = tab.ways.some((way) => known.jobs[way.job] && known.jobs[way.job].models.length);
    return make("button", {
      type: "button", role: "tab", id: "tab-" + tab.id, class: isAble ? "app-tab" : "app-tab lacking", "aria-selected": "false",
      "aria-controls": "panel-" + tab.id, tabindex: -1, title: isAble ? null : "No served model can do this", onclick: () => openTab(tab.id),
    }, tab.title);
  }));
  for (const panel of panels.values()) panel.element.remove();
  panels.clear();
  for (const tab of page.tabs) {
    const panel = new page.Panel(tab, known, tell);
    panels.set(tab.id, panel);
    byId("main").append(panel.element);
  }
}

function show(id) {
  open = panels.get(id);
  for (const [name, panel] of panels) {
    const isOpen = panel === open;
    panel.element.hidden = !isOpen;
    const button = byId("tab-" + name);
    button.setAttribute("aria-selected", String(isOpen));
    button.tabIndex = isOpen ? 0 : -1;
    if (isOpen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  document.title = `${open.tab.title} · bertsmith`;
  if (open.form) page.growAll(open.form);
}

function openTab(id) {
  show(id);
  history.pushState(null, "", page.sharing.write(open.state()));
  open.run();
}

function restore() {
  const shared = page.sharing.read(location.hash);
  const first = page.tabs.find((tab) => tab.ways.some((way) => panels.get(tab.id).can(way))) || page.tabs[0];
  show(panels.has(shared.tab) ? shared.tab : first.id);
  open.restore(shared);
}

// As the patterns of ARIA have it: arrows go to the next tab, Home and End to the first and the last.
function moveTab(event) {
  const ids = page.tabs.map((tab) => tab.id);
  const at = ids.indexOf(open.tab.id);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + ids.length, Home: 0, End: ids.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  openTab(ids[to % ids.length]);
  byId("tab-" + open.tab.id).focus();
}

async function share() {
  const button = byId("share");
  const isWhole = location.hash.includes("?") || !open || !open.form;
  try {
    if (!isWhole) throw new Error("too long");
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Copied";
  } catch {
    button.textContent = isWhole ? "Copy it from the address bar" : "This is too long for a link";
  }
  byId("said").textContent = button.textContent;
  setTimeout(() => { button.textContent = "Copy link"; }, 2000);
}

async function start() {
  try {
    const { told } = await page.server.list();
    if (!told.models.length) throw new page.Trouble("busy", "No model is served yet.", 1);
    for (const job of told.jobs) known.jobs[job.name] = job;
    for (const card of told.models) known.cards[card.id] = card;
  } catch (trouble) {
    return tell.trouble(trouble, start);
  }
  showBanner("");
  byId("loading").hidden = true;
  byId("forget").hidden = !page.server.hasKey();
  byId("serves").textContent = "serves " + nameModels(Object.keys(known.cards));
  drawTabs();
  return restore();
}

byId("tabs").addEventListener("keydown", moveTab);
byId("share").addEventListener("click", share);
byId("forget").addEventListener("click", () => { page.server.keep(""); location.reload(); });
byId("keys").querySelector("form").addEventListener("submit", takeKey);
byId("keys-close").addEventListener("click", refuseKey);
byId("keys").addEventListener("cancel", (event) => { event.preventDefault(); refuseKey(); });
addEventListener("popstate", () => { if (panels.size) restore(); });
start();
}
