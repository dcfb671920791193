// The questions about messages and about the whole conversation.

import { messages, scrollToEnd, scrollToMessage } from "./chat_messages.js";
import { t } from "./words.js";

const part = (id) => document.getElementById(id);

export function sentence(text) {
  return text ? t("{text}.", { text: text[0].toUpperCase() + text.slice(1) }) : "";
}

// `sources`: what the reader has been given to read, or nothing; other sections are not offered.
export function makeForm(kind, key, sources, onSend) {
  const template = part(`form-${kind}`);
  if (!template) return null;
  const form = template.content.firstElementChild.cloneNode(true);
  for (const input of form.querySelectorAll("input")) {
    input.name = `${key}:${input.closest("[data-criterion]").dataset.criterion}`;
    if (sources && /^[FA]S\d$/.test(input.value) && !sources.has(input.value)) input.closest("label").remove();
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
      problem.textContent = t("Please answer this question, too.");
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

export function askAboutTurns(view, sources, ask, then) {
  const last = view.n_turns - 1;
  let hasNew = false;
  for (const [number, element] of messages) {
    const kind = element.classList.contains("mine") ? "own" : "partner";
    const form = element.querySelector("form");
    const isRecent = number > last - view.sides - 1 && number >= view.first;
    const isAsked = view.ask.includes(number) || (isRecent && !element.dataset.answered);
    const isOpen = view.state === "talking" && isAsked && Number(element.dataset.leg) === view.leg;
    if (form && !isOpen) form.remove();
    if (!form && isOpen) {
      const made = makeForm(kind, `turn${number}`, sources, (answers, tell) => {
        ask({ type: "answer", turn: number, answers }, (frame) => {
          tell(frame);
          if (frame.type !== "done") return;
          element.dataset.answered = describeAnswers(kind, answers);
          made.remove();
          summarise(element);
          const next = part("log").querySelector("form.about input");
          (next ?? part("text")).focus({ preventScroll: next !== null });
          then();
        });
      });
      if (made) {
        element.append(made);
        hasNew = true;
      }
    }
    summarise(element);
  }
  const first = part("log").querySelector("form.about");
  if (hasNew) scrollToMessage(first.closest(".message"));
}

// Answers in the words of their questions; what is stored may be a number, or in another language.
export function describeAnswers(kind, answers) {
  const said = Object.entries(answers).flatMap(([criterion, value]) => {
    const question = part(`form-${kind}`)?.content.querySelector(`[data-criterion="${CSS.escape(criterion)}"]`);
    const labels = new Map([...(question?.querySelectorAll(".choice input") ?? [])].map((choice) => [choice.value, choice.nextElementSibling.firstChild.textContent.trim()]));
    return labels.size ? value.split("|").map((one) => labels.get(one) ?? one) : [t("answered")];
  });
  return said.join(", ");
}

function summarise(element) {
  if (!element.dataset.answered) return;
  let line = element.querySelector(".answers");
  if (!line) {
    line = document.createElement("span");
    line.className = "mark answers";
    element.append(line);
  }
  line.textContent = element.dataset.answered;
}

export function askAtEnd(view, sources, ask) {
  const verdict = part("verdict");
  const isNew = verdict.hidden;
  verdict.hidden = view.state !== "rating";
  if (verdict.hidden) return;
  for (const form of verdict.querySelectorAll("form")) if (!view.rate.includes(form.dataset.place)) form.remove();
  const names = view.sides > 1 ? [t("The left one"), t("The right one")] : [t("The first one"), t("The second one")];
  const isCompared = view.sides > 1 || view.legs > 1;
  for (const place of view.rate) {
    if (verdict.querySelector(`form[data-place="${place}"]`)) continue;
    const form = makeForm(place === "" && isCompared ? "pair" : "whole", `end${place}`, sources, (answers, tell) => {
      ask({ type: "answer", place, answers }, tell);
    });
    if (!form) continue;
    form.dataset.place = place;
    if (place !== "") form.querySelector(".about-title").textContent = names[Number(place)];
    verdict.append(form);
  }
  if (isNew) scrollToEnd();
  if (!verdict.contains(document.activeElement)) verdict.querySelector("input")?.focus();
}
