// Two bots side by side: which reply is better, and who was who once everything is rated.

import { messages, scrollToEnd } from "./chat_messages.js";
import { describeAnswers, makeForm } from "./chat_questions.js";
import { t } from "./words.js";

const part = (id) => document.getElementById(id);

// The vote on the last two replies, while it can be given.
export function askAboutReplies(view, ask, then) {
  const turn = view.state === "talking" ? (view.vote ?? null) : null;
  const log = part("log");
  const open = log.querySelector("form.vote");
  if (open && Number(open.dataset.turn) === turn) return;
  open?.remove();
  if (turn === null) return;
  const form = makeForm("replies", `vote${turn}`, null, (answers, tell) => {
    ask({ type: "answer", turn, answers }, (frame) => {
      tell(frame);
      if (frame.type !== "done") return;
      form.remove();
      markVotes(turn, answers);
      part("text").focus();
      then();
    });
  });
  form.classList.add("vote");
  form.dataset.turn = turn;
  log.append(form);
  scrollToEnd();
}

// What was voted stands under one's own message.
export function markVotes(turn, votes) {
  const element = messages.get(turn);
  const said = describeAnswers("replies", votes);
  if (!element || !said) return;
  const mark = element.querySelector(".votes") ?? document.createElement("span");
  mark.className = "mark votes";
  mark.textContent = t("your vote: {votes}", { votes: said });
  element.append(mark);
}

// Who was who; whether there is anything to say.
export function showNames(names, areSides, isOver) {
  const card = part("names");
  card.hidden = !names?.length;
  if (card.hidden) return false;
  const sides = areSides ? [t("The left one"), t("The right one")] : [t("The first one"), t("The second one")];
  const places = names.length < 2 ? [t("Chatbot")] : sides;
  const lines = names.map((name, place) => {
    const line = document.createElement("li");
    const strong = document.createElement("strong");
    strong.textContent = name;
    line.append(`${places[place]}: `, strong);
    return line;
  });
  card.querySelector("ul").replaceChildren(...lines);
  const goOn = card.querySelector(".actions");
  goOn.hidden = !isOver;
  if (isOver) goOn.querySelector(".go").focus();
  return true;
}
