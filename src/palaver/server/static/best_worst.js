// Best and worst: each is one output of the page. Choosing another one takes it from the first, and once both are
// chosen, all others are neither. Without this module every output has its own three choices.

const sets = new Map();
for (const choices of document.querySelectorAll(".order")) {
  const question = choices.closest(".question");
  const { criterion } = question.dataset;
  sets.set(criterion, [...(sets.get(criterion) ?? []), question]);
}

function choose(questions, chosen) {
  const choice = (q, value) => q.querySelector(`input[value="${value}"]`);
  const has = (value) => questions.some((q) => choice(q, value).checked);
  if (chosen.value !== "0") {
    for (const q of questions) {
      const other = choice(q, chosen.value);
      if (other !== chosen) other.checked = false;
    }
  }
  const isDone = has("1") && has("-1");
  for (const q of questions) {
    const isOpen = !choice(q, "1").checked && !choice(q, "-1").checked;
    if (isOpen) choice(q, "0").checked = isDone;
  }
}

for (const questions of sets.values()) {
  for (const q of questions) q.addEventListener("change", (event) => choose(questions, event.target));
}
