// Browsers start no worker for a page that was opened from disk. There, the script of the search runs in a hidden
// frame of this page instead, which speaks as a worker does.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.hear(data);
      inside.importScripts = (...urls) =>
        urls.reduce((done, one) => done.then(() => this.load(one)), Promise.resolve());
      this.load(url).then(() => this.waiting.splice(0).forEach((data) => this.tell(data)));
    }
    load(url) {
      const inside = this.frame.contentDocument;
      return new Promise((done) => {
        const script = inside.createElement("script");
        script.src = url;
        script.onload = done;
        inside.body.appendChild(script);
      }).then(() => { this.ready = true; });
    }
    hear(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    tell(data) {
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.ready) setTimeout(() => this.tell(data));
      else this.waiting.push(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
