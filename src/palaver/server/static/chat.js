// The page on which people talk. It holds nothing that the server does not have, except messages that were not
// acknowledged yet.

import { Link, SECOND } from "./chat_link.js";
import { clearMessages, drawChanges, drawPiece, drawTurn, drawUnsettled, markDelivered, messages, settleMessage } from "./chat_messages.js";
import { askAboutTurns, askAtEnd, describeAnswers, sentence } from "./chat_questions.js";
import { countNews, loadReading } from "./chat_reading.js";
import { askAboutReplies, markVotes, showNames } from "./chat_votes.js";
import { t } from "./words.js";

const part = (id) => document.getElementById(id);
const root = part("chat");
const isDisclosed = "disclosed" in root.dataset;
const page = {
  room: 0, turns: 0, view: null, sources: undefined, deadline: 0, began: 0, pasted: 0, typedAt: 0, typingUntil: 0,
  areSides: false, hasTalked: false,
};

const link = new Link(root.dataset.socket, document.querySelector('meta[name="csrf"]').content, {
  hello: () => ({ room: page.room, turns: page.turns }),
  frame: receive,
  lost: (why) => {
    tell(why);
    refresh();
  },
  back: () => tell(""),
  settled: (id, frame, message) => {
    settleMessage(id, frame.type === "done");
    if (frame.type !== "done") {
      if (!part("text").value) part("text").value = message.text;
      tell(sentence(frame.why));
    }
    refresh();
  },
});
const ask = (frame, then) => link.ask(frame, then);

function receive(frame) {
  if (frame.type === "view") show(frame);
  else if (frame.type === "typing") {
    page.typingUntil = Date.now() + 4 * SECOND;
    refresh();
  } else if (frame.type === "got") markDelivered(frame.turns);
  else if (frame.type === "piece" && frame.room === page.room) drawPiece(frame);
  else if (frame.type === "refused") tell(sentence(frame.why));
}

function tell(text) {
  const line = part("line");
  line.textContent = text;
  line.hidden = !text;
}

// --- what is shown -----------------------------------------------------------------------------------------

function show(view) {
  const areSides = page.view?.sides > 1 || page.areSides;
  page.areSides = areSides;
  page.view = view;
  if (view.state === "out") {
    link.end();
    if (page.hasTalked && showNames(view.names, areSides, true)) {
      leaveRoom();
      part("between").hidden = true;
    } else location.replace(root.dataset.next);
    return;
  }
  showNames(view.names, areSides, false);
  if (view.state === "invited") ready();
  if (view.seconds_left !== undefined) page.deadline = Date.now() + view.seconds_left * SECOND;
  if (view.room !== undefined && view.turns !== undefined) enterRoom(view);
  else if (page.room) leaveRoom();
  part("wait").hidden = !["waiting", "invited", "new"].includes(view.state);
  const isBetween = view.state === "between";
  if (isBetween && part("between").hidden) requestAnimationFrame(() => part("between").querySelector("button").focus());
  part("between").hidden = !isBetween;
  tick();
  refresh();
}

function ready() {
  if (document.visibilityState === "visible") {
    link.send({ type: "ready" });
    mark(false);
  } else mark(true);
}

// The tab says that there is something new, to somebody who looks at another one.
function mark(isNew) {
  document.title = (isNew ? "(!) " : "") + document.title.replace(/^\(!\) /, "");
}

function leaveRoom() {
  page.room = 0;
  page.turns = 0;
  page.sources = undefined; // the next conversation has its own to read
  clearMessages();
  part("verdict").replaceChildren();
  part("room").hidden = true;
}

function enterRoom(view) {
  if (page.room && page.room !== view.room) leaveRoom();
  if (!page.room) {
    loadReading(root.dataset.reading).then((sources) => page.room === view.room && takeSources(sources));
    if (window.matchMedia("(hover: hover)").matches) requestAnimationFrame(() => part("text").focus()); // no keyboard springs up
  }
  page.room = view.room;
  page.hasTalked = true;
  part("room").hidden = false;
  page.began = Date.now() - view.talked * SECOND;
  part("log").classList.toggle("two", view.sides > 1);
  const turns = view.turns.filter((turn) => !messages.has(turn.n));
  for (const turn of turns) {
    if (turn.id) link.forget(turn.id);
    drawChanges(view.changes, turn.n);
    drawTurn(turn, describeAnswers(turn.mine ? "own" : "partner", turn.answers));
    markVotes(turn.n, turn.votes);
  }
  page.turns = view.n_turns;
  drawChanges(view.changes, view.n_turns);
  const theirs = turns.filter((turn) => !turn.mine).length;
  if (theirs) {
    page.typingUntil = 0;
    countNews(theirs);
    if (document.hidden) mark(true);
    link.send({ type: "got", turns: page.turns });
  }
  if (page.sources !== undefined) askAboutTurns(view, page.sources, ask, refresh);
  askAboutReplies(view, ask, refresh);
  askAtEnd(view, page.sources, ask);
}

function takeSources(sources) {
  page.sources = sources;
  if (page.view?.turns) askAboutTurns(page.view, sources, ask, refresh);
}

function refresh() {
  const view = page.view;
  if (!view || part("room").hidden) return;
  const isTalking = view.state === "talking";
  part("say").hidden = !isTalking;
  part("alone").hidden = view.state !== "alone";
  for (const button of part("alone").querySelectorAll("[data-choose]")) button.hidden = !view.options.includes(button.dataset.choose);
  const canSay = isTalking && view.can_say && link.isOpen && link.unsettled.size === 0;
  part("send").disabled = !canSay;
  const hasTime = part("log").querySelector("form.about") && !view.must_answer;
  const meanwhile = hasTime ? ` ${t("Meanwhile, answer the questions.")}` : "";
  const why = isTalking && !view.can_say ? sentence(view.why) + meanwhile : "";
  if (part("why").textContent !== why) part("why").textContent = why;
  part("submit").hidden = !(isTalking && view.can_submit);
  part("submit").textContent = view.leg + 1 < view.legs ? t("Go on to the next partner") : t("Submit the conversation");
  part("count").textContent = t("{said} of at least {fewest} messages", { said: view.said, fewest: view.fewest });
  const { is_away: isAway, is_bot: isBot, is_typing: isTyping } = view.partner;
  const who = isBot && isDisclosed ? (view.sides > 1 ? t("You are talking with two chatbots.") : t("You are talking with a chatbot.")) : "";
  const start = isTalking && view.n_turns === 0 ? t("Your partner is here. Either of you may begin.") : "";
  const about = isAway ? t("Your partner has lost the connection. Wait a moment.") : who || start;
  if (part("partner").textContent !== about) part("partner").textContent = about;
  const types = isTalking && (isTyping || Date.now() < page.typingUntil);
  const typist = isBot && isDisclosed ? (view.sides > 1 ? t("The chatbots are typing…") : t("The chatbot is typing…")) : t("Your partner is typing…");
  part("typing").textContent = types ? typist : "";
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

// --- what people do ----------------------------------------------------------------------------------------

part("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = part("text").value.trim();
  if (!text || part("send").disabled) return;
  part("text").value = "";
  part("why").textContent = "";
  drawUnsettled(link.say(text, page.pasted), { text });
  page.pasted = 0;
  page.typedAt = 0; // whoever goes on typing at once is seen to
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
  link.send({ type: "typing", turns: page.turns });
});
part("text").addEventListener("paste", (event) => {
  if ("pasted" in root.dataset) page.pasted += event.clipboardData.getData("text").length;
});
const tellProblem = (frame) => frame.why && tell(sentence(frame.why));
part("submit").addEventListener("click", () => ask({ type: "submit" }, tellProblem));
for (const button of document.querySelectorAll("[data-choose]")) {
  button.addEventListener("click", () => ask({ type: "choose", option: button.dataset.choose }, tellProblem));
}
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) mark(false);
  if (page.view?.state === "invited") ready();
});

for (const [id, message] of link.unsettled) drawUnsettled(id, message);
setInterval(tick, SECOND);
link.connect();
