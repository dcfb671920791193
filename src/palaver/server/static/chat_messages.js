// The messages of a conversation on the page.

import { t } from "./words.js";

const root = document.getElementById("chat");
const log = document.getElementById("log");
const isDisclosed = "disclosed" in root.dataset;

export const messages = new Map(); // number of the turn -> element
const changes = new Set(); // before which turns it was said that somebody went on for another
const pieces = new Map(); // side -> what a bot is saying there

export function clearMessages() {
  messages.clear();
  changes.clear();
  pieces.clear();
  log.replaceChildren();
}

function makeMessage(turn) {
  const element = document.createElement("div");
  element.className = `message ${turn.mine ? "mine" : "theirs"} side-${turn.side ?? 0}`;
  const who = document.createElement("span");
  who.className = "unseen";
  who.textContent = `${turn.mine ? t("You") : speaker(turn)}: `;
  const text = document.createElement("div");
  text.className = "bubble";
  text.dir = "auto";
  text.textContent = turn.text;
  element.append(who, text);
  return element;
}

// Whoever hears the page and votes for one of two has to know which is which.
function speaker({ bot, side }) {
  if (log.classList.contains("two")) return side ? t("The right one") : t("The left one");
  return bot && isDisclosed ? t("Chatbot") : t("Partner");
}

function append(element) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 200;
  log.append(element);
  if (isAtEnd) scrollToEnd();
}

export function scrollToEnd() {
  log.scrollTop = log.scrollHeight;
}

// The end of the conversation, or the message to which something is to be answered where both do not fit.
export function scrollToMessage(element) {
  scrollToEnd();
  const above = element.getBoundingClientRect().top - log.getBoundingClientRect().top;
  if (above < 0) log.scrollTop += above - 8;
}

export function setMark(element, text) {
  let mark = element.querySelector(".delivery");
  if (!mark) {
    mark = document.createElement("span");
    mark.className = "mark delivery";
    element.querySelector(".bubble").after(mark);
  }
  mark.textContent = text;
}

export function markDelivered(turns) {
  for (const [number, element] of messages) {
    if (number < turns && element.classList.contains("mine")) setMark(element, t("delivered ✓✓"));
  }
}

const unsettledMessage = (id) => document.querySelector(`[data-id="${CSS.escape(id)}"]`);

export function drawUnsettled(id, message) {
  const element = makeMessage({ mine: true, text: message.text });
  element.dataset.id = id;
  setMark(element, t("sending…"));
  append(element);
}

export function settleMessage(id, isSaved) {
  const element = unsettledMessage(id);
  if (!element) return;
  if (isSaved) setMark(element, t("saved ✓"));
  else element.remove();
}

function drawLine(text) {
  const line = document.createElement("p");
  line.className = "part-begins";
  line.textContent = text;
  append(line);
}

// Before which turns somebody took the place of somebody who had left.
export function drawChanges(all, turn) {
  for (const { who } of all.filter(({ n }) => n === turn && !changes.has(n))) {
    changes.add(turn);
    drawLine(who === "you"
      ? t("What is above was said by somebody who left, and their partner. Go on from here.")
      : t("Your partner left. From here on somebody else answers."));
  }
}

// `answered`: what its reader has said about it, in words.
export function drawTurn(turn, answered) {
  if (!turn.mine) {
    dropPiece(turn.side);
    markDelivered(turn.n); // whoever answers has seen it
  }
  const sent = turn.id && unsettledMessage(turn.id);
  const element = sent || makeMessage(turn);
  const before = messages.get(turn.n - 1);
  messages.set(turn.n, element);
  if (!sent) {
    if (turn.leg > 0 && before?.dataset.leg !== String(turn.leg)) drawLine(t("The next partner"));
    append(element);
  }
  element.dataset.leg = turn.leg;
  if (turn.mine) setMark(element, t("saved ✓"));
  if (answered) element.dataset.answered = answered;
}

// What a bot has said so far to the first `turns` turns. Whoever listens to the page hears the whole message when
// it is there.
export function drawPiece({ side, turns, text }) {
  const isSaid = [...messages].some(([number, { classList }]) => number >= turns && classList.contains("theirs") && classList.contains(`side-${side}`));
  if (isSaid) return;
  let element = pieces.get(side);
  if (!element) {
    element = makeMessage({ mine: false, bot: true, side, text: "" });
    element.classList.add("piece");
    element.setAttribute("aria-hidden", "true");
    pieces.set(side, element);
    append(element);
  }
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 200;
  element.querySelector(".bubble").textContent = `${text} …`;
  if (isAtEnd) scrollToEnd();
}

function dropPiece(side) {
  pieces.get(side)?.remove();
  pieces.delete(side);
}
