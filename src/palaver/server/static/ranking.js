// Ranking: the outputs of the page are put in order by dragging, or by the buttons beside each. The lists of ranks
// hold the answer, so nothing is preset; without this module they alone are there.

import { t } from "./words.js";

const outputs = document.querySelector(".outputs");
const cards = () => [...outputs.children];
const fields = [...document.querySelectorAll(".rank select")];
const ofOneQuestion = new Set(fields.map((f) => f.closest(".rank").dataset.criterion)).size === 1;
const mayTie = document.querySelector(".rank.ties") !== null;

function takeOrder() {
  cards().forEach((card, place) => {
    const field = card.querySelector(".rank select");
    field.value = String(place + 1);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

function tell(card) {
  const output = card.querySelector("h2").textContent;
  news.textContent = t("{output}: place {place} of {total}", { output, place: cards().indexOf(card) + 1, total: fields.length });
}

function move(card, step) {
  const place = cards().indexOf(card) + step;
  if (place < 0 || place >= fields.length) return;
  if (step < 0) cards()[place].before(card);
  else cards()[place].after(card);
  takeOrder();
  tell(card);
}

function addButton(card, sign, label, step) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain";
  button.textContent = sign;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => {
    move(card, step);
    button.focus();
  });
  card.querySelector(".rank .field").append(button);
}

const EDGE = 60;
const STEP = 20;

function letDrag(card) {
  const handle = card.querySelector("h2");
  handle.classList.add("handle");
  handle.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    event.preventDefault();
    card.classList.add("dragged");
    const follow = (at) => {
      if (at.clientY < EDGE) window.scrollBy(0, -STEP);
      if (at.clientY > window.innerHeight - EDGE) window.scrollBy(0, STEP);
      const over = cards().find((other) => {
        const box = other.getBoundingClientRect();
        return other !== card && at.clientY > box.top && at.clientY < box.bottom;
      });
      if (!over) return;
      const middle = over.getBoundingClientRect().top + over.getBoundingClientRect().height / 2;
      const isBelow = cards().indexOf(over) > cards().indexOf(card);
      if (isBelow && at.clientY > middle) over.after(card);
      if (!isBelow && at.clientY < middle) over.before(card);
    };
    const drop = () => {
      document.removeEventListener("pointermove", follow);
      document.removeEventListener("pointerup", drop);
      document.removeEventListener("pointercancel", drop);
      card.classList.remove("dragged");
      takeOrder();
      tell(card);
    };
    // Not on the handle: an element that moves in the page loses the pointer.
    document.addEventListener("pointermove", follow);
    document.addEventListener("pointerup", drop);
    document.addEventListener("pointercancel", drop);
  });
}

const news = document.createElement("p");
news.className = "unseen";
news.setAttribute("role", "status");
if (ofOneQuestion && !mayTie) { // several rankings of the same cards, or equal ranks, are for the lists
  outputs.after(news);
  if (fields.every((field) => field.value)) { // answered before, or a draft
    const rank = (card) => Number(card.querySelector(".rank select").value);
    outputs.append(...cards().sort((a, b) => rank(a) - rank(b)));
  }
  for (const card of cards()) {
    const output = card.querySelector("h2").textContent;
    addButton(card, "↑", t("Up: {output}", { output }), -1);
    addButton(card, "↓", t("Down: {output}", { output }), 1);
    letDrag(card);
  }
}
