// The page on which people talk. It holds nothing that the server does not have, except messages that were not
// acknowledged yet: these are kept in the tab's storage and sent again, under the same id.

const root = document.getElementById("chat");
const part = (id) => document.getElementById(id);
const token = document.querySelector('meta[name="csrf"]').content;
const storage = `palaver-chat-${token.slice(0, 16)}`;
const SECOND = 1000;
const HEARTBEAT = 5 * SECOND;

const page = {
  socket: null, room: 0, turns: 0, view: null, attempts: 0, isOver: false,
  deadline: 0, began: 0, sources: null, pasted: 0, typedAt: 0, typingUntil: 0,
};
const waiting = new Map(); // id -> { text, pasted }: messages that are not acknowledged
const bubbles = new Map(); // number of the turn -> element
const marks = new Map(); // mark of a request -> what to do with the reply

// --- the connection ----------------------------------------------------------------------------------------

function connect() {
  const url = new URL(root.dataset.socket, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url);
  page.socket = socket;
  socket.onopen = () => {
    page.attempts = 0;
    send({ type: "hello", token, room: page.room, turns: page.turns });
    for (const [id, message] of waiting) sendMessage(id, message);
    tell("");
  };
  socket.onmessage = (event) => receive(JSON.parse(event.data));
  socket.onclose = (event) => {
    if (page.socket !== socket || page.isOver) return;
    page.socket = null;
    marks.clear();
    if (event.code === 1008 && event.reason.includes("another window")) {
      tell("This conversation is open in another window. Go on there, or reload this page.");
      return;
    }
    tell("The connection is lost. What you wrote is kept; trying again…");
    refresh();
    page.attempts += 1;
    setTimeout(connect, Math.min(5 * SECOND, 250 * 2 ** page.attempts));
  };
}

function send(frame) {
  if (page.socket?.readyState === WebSocket.OPEN) page.socket.send(JSON.stringify(frame));
}

function ask(frame, then) {
  const mark = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  marks.set(mark, then);
  send({ ...frame, mark });
}

function receive(frame) {
  if (frame.type === "view") return show(frame);
  if (frame.type === "typing") {
    page.typingUntil = Date.now() + 4 * SECOND;
    return refresh();
  }
  if (frame.type === "got") return markDelivered(frame.turns);
  if (waiting.has(frame.mark)) return settle(frame);
  if (frame.type === "refused" && !frame.mark) return tell(sentence(frame.why));
  const then = marks.get(frame.mark);
  marks.delete(frame.mark);
  then?.(frame);
}

function sentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "";
}

function tell(text) {
  const line = part("line");
  line.textContent = text;
  line.hidden = !text;
}

// --- messages ----------------------------------------------------------------------------------------------

function sendMessage(id, message) {
  send({ type: "say", id, text: message.text, pasted: message.pasted, mark: id });
}

function keep() {
  sessionStorage.setItem(storage, JSON.stringify([...waiting]));
}

function say(text) {
  const id = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  const message = { text, pasted: page.pasted };
  page.pasted = 0;
  waiting.set(id, message);
  keep();
  drawWaiting(id, message);
  sendMessage(id, message);
}

function drawWaiting(id, message) {
  const element = bubble({ mine: true, text: message.text });
  element.dataset.id = id;
  setMark(element, "sending…");
  append(element);
}

function settle(frame) {
  const message = waiting.get(frame.mark);
  const element = document.querySelector(`[data-id="${CSS.escape(frame.mark)}"]`);
  if (frame.type === "done") {
    waiting.delete(frame.mark);
    if (element) setMark(element, "saved ✓");
  } else if (frame.again) {
    setTimeout(() => sendMessage(frame.mark, message), 2 * SECOND);
    return;
  } else {
    waiting.delete(frame.mark);
    element?.remove();
    if (!part("text").value) part("text").value = message.text;
    tell(sentence(frame.why));
  }
  keep();
  refresh();
}

function bubble(turn) {
  const element = document.createElement("div");
  element.className = `message ${turn.mine ? "mine" : "theirs"} side-${turn.side ?? 0}`;
  const who = document.createElement("span");
  who.className = "unseen";
  who.textContent = turn.mine ? "You: " : turn.bot && "disclosed" in root.dataset ? "Chatbot: " : "Partner: ";
  const text = document.createElement("div");
  text.className = "bubble";
  text.textContent = turn.text;
  element.append(who, text);
  return element;
}

function setMark(element, text) {
  let mark = element.querySelector(".mark");
  if (!mark) {
    mark = document.createElement("span");
    mark.className = "mark";
    element.querySelector(".bubble").after(mark);
  }
  mark.textContent = text;
}

function markDelivered(turns) {
  for (const [number, element] of bubbles) {
    if (number < turns && element.classList.contains("mine")) setMark(element, "delivered ✓✓");
  }
}

function append(element) {
  const log = part("log");
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 200;
  log.append(element);
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function unveil(element) {
  // A bot's words appear one after the other; whoever listens to the page hears them at once.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const text = element.querySelector(".bubble");
  const words = text.textContent.split(/(?<=\s)/);
  const whole = document.createElement("span");
  whole.className = "unseen";
  whole.textContent = text.textContent;
  const seen = document.createElement("span");
  seen.setAttribute("aria-hidden", "true");
  text.replaceChildren(whole, seen);
  const step = () => {
    seen.textContent += words.splice(0, 2).join("");
    part("log").scrollTop = part("log").scrollHeight;
    if (words.length) setTimeout(step, 60);
    else text.textContent = whole.textContent;
  };
  step();
}

function drawTurn(turn, isNew) {
  const pending = turn.id && document.querySelector(`[data-id="${CSS.escape(turn.id)}"]`);
  if (turn.id) waiting.delete(turn.id);
  const element = pending || bubble(turn);
  bubbles.set(turn.n, element);
  if (!pending) {
    const before = bubbles.get(turn.n - 1);
    if (turn.leg > 0 && before?.dataset.leg !== String(turn.leg)) {
      const line = document.createElement("p");
      line.className = "part-begins";
      line.textContent = "The next partner";
      append(line);
    }
    append(element);
  }
  element.dataset.leg = turn.leg;
  if (turn.mine) setMark(element, "saved ✓");
  if (turn.bot && isNew) unveil(element);
  if (Object.keys(turn.answers).length) element.dataset.answered = Object.values(turn.answers).join(", ");
}

// --- questions ---------------------------------------------------------------------------------------------

function makeForm(kind, key, onSend) {
  const template = part(`form-${kind}`);
  if (!template) return null;
  const form = template.content.firstElementChild.cloneNode(true);
  for (const input of form.querySelectorAll("input")) {
    input.name = `${key}:${input.closest("[data-criterion]").dataset.criterion}`;
    if (page.sources && /^[FA]S\d$/.test(input.value) && !page.sources.has(input.value)) input.closest("label").remove();
  }
  for (const element of form.querySelectorAll("[id], [for], [aria-describedby]")) {
    for (const name of ["id", "for", "aria-describedby"]) {
      if (element.hasAttribute(name)) element.setAttribute(name, `${key}-${element.getAttribute(name)}`);
    }
  }
  form.addEventListener("change", (event) => {
    const box = event.target;
    if (box.type !== "checkbox" || !box.checked) return;
    for (const other of box.closest(".question").querySelectorAll("input:checked")) {
      if (other !== box && ("alone" in box.dataset || "alone" in other.dataset)) other.checked = false;
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const answers = read(form);
    const problem = form.querySelector(".problem");
    const missing = [...form.querySelectorAll(".question")].find(
      (question) => !question.querySelector(".optional") && !(question.dataset.criterion in answers),
    );
    problem.hidden = !missing;
    if (missing) {
      problem.textContent = "Please answer this question, too.";
      missing.querySelector("input")?.focus();
      return;
    }
    onSend(answers, (frame) => {
      if (frame.type === "done") return;
      problem.textContent = sentence(frame.why);
      problem.hidden = false;
    });
  });
  return form;
}

function read(form) {
  const answers = {};
  for (const question of form.querySelectorAll(".question")) {
    const { kind, criterion } = question.dataset;
    const inputs = [...question.querySelectorAll("input")];
    const values = kind === "number" ? inputs.map((i) => i.value.trim()) : inputs.filter((i) => i.checked).map((i) => i.value);
    if (values.filter(Boolean).length) answers[criterion] = values.join("|");
  }
  return answers;
}

function askAboutTurns(view) {
  const last = view.n_turns - 1;
  for (const [number, element] of bubbles) {
    const kind = element.classList.contains("mine") ? "own" : "partner";
    const form = element.querySelector("form");
    const isAsked = view.ask.includes(number) || (number > last - view.sides - 1 && !element.dataset.answered);
    const isOpen = view.state === "talking" && isAsked && Number(element.dataset.leg) === view.leg;
    if (form && !isOpen) form.remove();
    if (!form && isOpen) {
      const made = makeForm(kind, `turn${number}`, (answers, then) => {
        ask({ type: "answer", turn: number, answers }, (frame) => {
          then(frame);
          if (frame.type !== "done") return;
          element.dataset.answered = describe(made);
          made.remove();
          if (kind === "own") part("log").focus();
          else part("text").focus();
          refresh();
        });
      });
      if (made) {
        element.append(made);
        const log = part("log");
        if (number === last) log.scrollTop = log.scrollHeight;
      }
    }
    summarise(element);
  }
}

function describe(form) {
  const chosen = [...form.querySelectorAll("input:checked")].map((input) => input.nextElementSibling.firstChild.textContent.trim());
  return chosen.join(", ") || "answered";
}

function summarise(element) {
  let line = element.querySelector(".answers");
  if (!element.dataset.answered) return;
  if (!line) {
    line = document.createElement("span");
    line.className = "mark answers";
    element.append(line);
  }
  line.textContent = element.dataset.answered;
}

function askAtEnd(view) {
  const verdict = part("verdict");
  verdict.hidden = view.state !== "rating";
  if (verdict.hidden) return;
  for (const form of verdict.querySelectorAll("form")) if (!view.rate.includes(form.dataset.place)) form.remove();
  const names = view.sides > 1 ? ["The left one", "The right one"] : ["The first one", "The second one"];
  const isCompared = view.sides > 1 || view.legs > 1;
  for (const place of view.rate) {
    if (verdict.querySelector(`form[data-place="${place}"]`)) continue;
    const form = makeForm(place === "" && isCompared ? "pair" : "whole", `end${place}`, (answers, then) => {
      ask({ type: "answer", place, answers }, then);
    });
    if (!form) continue;
    form.dataset.place = place;
    if (place !== "") form.querySelector("h3").textContent = names[Number(place)];
    verdict.append(form);
  }
  if (!verdict.contains(document.activeElement)) verdict.querySelector("input")?.focus();
}

// --- what is shown -----------------------------------------------------------------------------------------

function show(view) {
  page.view = view;
  if (view.state === "out") {
    page.isOver = true;
    sessionStorage.removeItem(storage);
    location.replace(root.dataset.next);
    return;
  }
  if (view.state === "invited") ready();
  if (view.seconds_left !== undefined) page.deadline = Date.now() + view.seconds_left * SECOND;
  if (view.room !== undefined && view.turns !== undefined) enterRoom(view);
  else if (page.room) leaveRoom();
  part("wait").hidden = !["waiting", "invited", "new"].includes(view.state);
  part("between").hidden = view.state !== "between";
  refresh();
}

function ready() {
  if (document.visibilityState === "visible") {
    send({ type: "ready" });
    document.title = document.title.replace(/^\(!\) /, "");
  } else if (!document.title.startsWith("(!)")) {
    document.title = `(!) ${document.title}`;
  }
}

function leaveRoom() {
  page.room = 0;
  page.turns = 0;
  bubbles.clear();
  part("log").replaceChildren();
  part("verdict").replaceChildren();
  part("room").hidden = true;
}

function enterRoom(view) {
  if (page.room && page.room !== view.room) leaveRoom();
  const isNew = page.room === view.room;
  if (!page.room) loadReading();
  page.room = view.room;
  part("room").hidden = false;
  page.began = Date.now() - view.talked * SECOND;
  part("log").classList.toggle("two", view.sides > 1);
  for (const turn of view.turns) if (!bubbles.has(turn.n)) drawTurn(turn, isNew);
  page.turns = view.n_turns;
  keep();
  if (view.turns.some((turn) => !turn.mine)) {
    page.typingUntil = 0;
    send({ type: "got", turns: page.turns });
  }
  askAboutTurns(view);
  askAtEnd(view);
}

function refresh() {
  const view = page.view;
  const isHere = page.socket !== null;
  if (!view || part("room").hidden) return;
  const isTalking = view.state === "talking";
  part("say").hidden = !isTalking;
  part("alone").hidden = view.state !== "alone";
  for (const button of part("alone").querySelectorAll("[data-choose]")) button.hidden = !view.options.includes(button.dataset.choose);
  const canSay = isTalking && view.can_say && isHere && waiting.size === 0;
  part("send").disabled = !canSay;
  const why = isTalking && !view.can_say ? sentence(view.why) : "";
  if (part("why").textContent !== why) part("why").textContent = why;
  part("submit").hidden = !(isTalking && view.can_submit);
  part("submit").textContent = view.leg + 1 < view.legs ? "Go on to the next partner" : "Submit the conversation";
  part("count").textContent = `${view.said} of at least ${view.fewest} messages`;
  const { is_away: isAway, is_bot: isBot, is_typing: isTyping } = view.partner;
  const who = isBot && "disclosed" in root.dataset ? (view.sides > 1 ? "You are talking with two chatbots." : "You are talking with a chatbot.") : "";
  part("partner").textContent = isAway ? "Your partner has lost the connection. Wait a moment." : who;
  const types = isTalking && (isTyping || Date.now() < page.typingUntil);
  part("typing").textContent = types ? (isBot && "disclosed" in root.dataset ? "The chatbot is typing…" : "Your partner is typing…") : "";
}

function tick() {
  const minutes = (ms) => {
    const seconds = Math.max(0, Math.round(ms / SECOND));
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  };
  if (!part("wait").hidden && page.deadline) part("left").textContent = minutes(page.deadline - Date.now());
  part("timer").textContent = page.room && page.began ? minutes(Date.now() - page.began) : "";
  if (page.typingUntil && Date.now() > page.typingUntil) {
    page.typingUntil = 0;
    refresh();
  }
}

// --- what to read ------------------------------------------------------------------------------------------

function make(name, text, ...children) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

async function loadReading() {
  const reply = await fetch(root.dataset.reading).catch(() => null);
  const shelf = reply?.ok ? await reply.json() : null;
  page.sources = shelf && new Set(shelf.factual.map((s) => s.name));
  if (!shelf) return;
  const parts = [make("h2", "Factual sections")];
  for (const section of shelf.factual) {
    const facts = make("ul", "", ...section.facts.map((fact) => make("li", fact)));
    parts.push(make("details", "", make("summary", `${section.name} · ${section.title}`), make("p", section.lead), facts));
  }
  if (shelf.article) {
    parts.push(make("h2", `Article: ${shelf.article.title}`));
    for (const piece of shelf.article.parts) {
      page.sources.add(piece.name);
      parts.push(make("details", "", make("summary", piece.name), make("p", piece.text)));
    }
  }
  for (const element of parts) if (element.localName === "details") element.open = true;
  const reading = part("reading");
  reading.tabIndex = 0;
  reading.replaceChildren(...parts);
  reading.hidden = false;
  part("drawer").hidden = false;
  part("room").classList.add("reads");
  if (page.view?.turns) askAboutTurns(page.view);
}

// --- what people do ----------------------------------------------------------------------------------------

part("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = part("text").value.trim();
  if (!text || part("send").disabled) return;
  part("text").value = "";
  part("why").textContent = "";
  say(text);
  refresh();
});
part("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    part("say").requestSubmit();
  }
});
part("text").addEventListener("input", () => {
  if (Date.now() < page.typedAt + 2 * SECOND) return;
  page.typedAt = Date.now();
  send({ type: "typing", turns: page.turns });
});
part("text").addEventListener("paste", (event) => {
  if ("pasted" in root.dataset) page.pasted += event.clipboardData.getData("text").length;
});
part("submit").addEventListener("click", () => ask({ type: "submit" }, (frame) => frame.why && tell(sentence(frame.why))));
for (const button of document.querySelectorAll("[data-choose]")) {
  button.addEventListener("click", () =>
    ask({ type: "choose", option: button.dataset.choose }, (frame) => frame.why && tell(sentence(frame.why))),
  );
}
part("drawer").addEventListener("click", () => {
  const isOpen = part("reading").classList.toggle("open");
  part("drawer").setAttribute("aria-expanded", String(isOpen));
  part("drawer").textContent = isOpen ? "Hide what to read" : "Show what to read";
});
document.addEventListener("visibilitychange", () => page.view?.state === "invited" && ready());

for (const [id, message] of JSON.parse(sessionStorage.getItem(storage) ?? "[]")) {
  waiting.set(id, message);
  drawWaiting(id, message);
}
setInterval(() => send({ type: "alive" }), HEARTBEAT);
setInterval(tick, SECOND);
connect();
