// How the page asks its server. `page.server.ask(job, given, signal)` gives what came, or throws a `Trouble` whose
// kind is "gone" (nobody answers), "key", "busy" (ask again after `seconds`), "refused" (with the server's own sentence) or
// "aborted".
"use strict";
bertsmith.page = {};
{
const { page } = bertsmith;
page.Trouble = class extends Error {
  constructor(kind, message, seconds) {
    super(message);
    this.kind = kind;
    this.seconds = seconds;
  }
};

page.server = (() => {
  const STORED = "bertsmith-key";
  const BUSY = [429, 503];
  const root = location.pathname.replace(/[^/]*$/, ""); // behind a path prefix, too

  const keep = (key) => (key ? sessionStorage.setItem(STORED, key) : sessionStorage.removeItem(STORED));
  const hasKey = () => sessionStorage.getItem(STORED) !== null;

  async function fetchJson(path, body, signal) {
    const headers = { accept: "application/json" };
    if (hasKey()) headers.authorization = "Bearer " + sessionStorage.getItem(STORED);
    if (body) headers["content-type"] = "application/json";
    const began = performance.now();
    let response;
    let told = null;
    try {
      response = await fetch(root + path, {
        method: body ? "POST" : "GET", headers, signal, body: body ? JSON.stringify(body) : undefined,
      });
      told = await response.json();
    } catch (error) {
      if (error.name === "AbortError") throw new page.Trouble("aborted", "");
      if (!response || error.name !== "SyntaxError") {
        throw new page.Trouble("gone", "The server does not answer.");
      }
    }
    if (!response.ok) throw complain(response, told);
    const number = (name) => Number(response.headers.get(name) || 0);
    return {
      told,
      costs: {
        seen: performance.now() - began, queued: number("x-queue-time"), worked: number("x-inference-time"),
        truncated: number("x-truncated-tokens"), tokens: number("x-compute-tokens"),
      },
    };
  }

  function complain(response, told) {
    const sentence = (told && told.error && told.error.message) || `the server answered ${response.status}.`;
    const message = sentence.charAt(0).toUpperCase() + sentence.slice(1);
    if (response.status === 401) return new page.Trouble("key", message);
    // What stands between us and the server says so by 502 and 504 without a sentence of ours.
    if (response.status === 502 || (response.status === 504 && !told)) return new page.Trouble("gone", "The server does not answer.");
    if (BUSY.includes(response.status)) {
      return new page.Trouble("busy", message, Number(response.headers.get("retry-after") || 1));
    }
    return new page.Trouble("refused", message);
  }

  return {
    keep,
    hasKey,
    list: () => fetchJson("v1/jobs"),
    ask: (job, given, signal) => fetchJson("v1/jobs/" + encodeURIComponent(job), given, signal),
    isReady: () => fetchJson("healthz/ready").then(() => true, (trouble) => trouble.kind !== "gone" && trouble.kind !== "busy"),
  };
})();
}
