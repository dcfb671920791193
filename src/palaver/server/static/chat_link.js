// The connection of the page on which people talk. It comes again by itself. Messages that were not acknowledged
// are kept in the tab's storage and sent again, under the same id.

import { t } from "./words.js";

export const SECOND = 1000;
const HEARTBEAT = 5 * SECOND;

const newId = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

export class Link {
  // `handlers`: hello() says what the page has; frame(frame), lost(why), back(); settled(id, frame, message).
  constructor(url, token, handlers) {
    this.url = new URL(url, location.href);
    this.url.protocol = this.url.protocol === "https:" ? "wss:" : "ws:";
    this.token = token;
    this.handlers = handlers;
    this.storage = `palaver-chat-${token.slice(0, 16)}`;
    this.unsettled = new Map(JSON.parse(sessionStorage.getItem(this.storage) ?? "[]")); // id -> { text, pasted }
    this.replies = new Map(); // mark of a request -> what to do with the reply
    this.socket = null;
    this.attempts = 0;
    this.isOver = false;
    setInterval(() => this.send({ type: "alive" }), HEARTBEAT);
  }

  get isOpen() {
    return this.socket !== null;
  }

  connect() {
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      this.attempts = 0;
      this.send({ type: "hello", token: this.token, ...this.handlers.hello() });
      for (const [id, message] of this.unsettled) this.sendMessage(id, message);
      this.handlers.back();
    };
    socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    socket.onclose = (event) => {
      if (this.socket !== socket || this.isOver) return;
      this.socket = null;
      this.replies.clear();
      if (event.code === 1008 && event.reason.includes("another window")) {
        this.handlers.lost(t("This conversation is open in another window. Go on there, or reload this page."));
        return;
      }
      this.handlers.lost(t("The connection is lost. What you wrote is kept; trying again…"));
      this.attempts += 1;
      setTimeout(() => this.connect(), Math.min(5 * SECOND, 250 * 2 ** this.attempts));
    };
  }

  send(frame) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
  }

  ask(frame, then) {
    const mark = newId();
    this.replies.set(mark, then);
    this.send({ ...frame, mark });
  }

  receive(frame) {
    if (this.unsettled.has(frame.mark)) return this.settle(frame);
    const then = this.replies.get(frame.mark);
    this.replies.delete(frame.mark);
    if (then) then(frame);
    else this.handlers.frame(frame);
  }

  // --- messages --------------------------------------------------------------------------------------------

  say(text, pasted) {
    const id = newId();
    const message = { text, pasted };
    this.unsettled.set(id, message);
    this.keep();
    this.sendMessage(id, message);
    return id;
  }

  sendMessage(id, message) {
    this.send({ type: "say", id, ...message, mark: id });
  }

  settle(frame) {
    const message = this.unsettled.get(frame.mark);
    if (frame.again) {
      setTimeout(() => this.sendMessage(frame.mark, message), 2 * SECOND);
      return;
    }
    this.forget(frame.mark);
    this.handlers.settled(frame.mark, frame, message);
  }

  forget(id) {
    if (this.unsettled.delete(id)) this.keep();
  }

  keep() {
    sessionStorage.setItem(this.storage, JSON.stringify([...this.unsettled]));
  }

  end() {
    this.isOver = true;
    sessionStorage.removeItem(this.storage);
  }
}
