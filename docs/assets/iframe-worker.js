// Browsers start no Worker for a page that is opened from the disk. The search then runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.documentElement.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      script.onload = () => {
        this.tell = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
        this.waiting.forEach(this.tell);
      };
      frame.contentDocument.head.append(script);
    }
    postMessage(data) {
      if (this.tell) this.tell(data);
      else this.waiting.push(data);
    }
  };
}
