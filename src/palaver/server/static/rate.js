// The rating page: an answer goes to this device's outbox first, then to the server, and is called saved only
// after the server said so. Without this module the form still works by an ordinary POST.

import { t } from "./words.js";

const form = document.getElementById("rate");
const state = document.getElementById("state");
const go = document.getElementById("go");
const { post, alive, next, feedback, rater, assignment, position } = form.dataset;
const token = document.querySelector("meta[name=csrf]").content;

// What the outputs answer is the end of a conversation so far; its beginning can be scrolled to.
for (const talk of document.querySelectorAll(".material .talk:not(.judged) .scroll")) talk.scrollTop = talk.scrollHeight;

// --- storage: may be forbidden (frames, private windows); then this page's memory must do ---

function store(kind) {
  try {
    const box = window[kind];
    box.setItem("palaver:probe", "1");
    box.removeItem("palaver:probe");
    return box;
  } catch {
    const kept = new Map();
    return {
      get length() { return kept.size; },
      key: (n) => [...kept.keys()][n] ?? null,
      getItem: (k) => kept.get(k) ?? null,
      setItem: (k, v) => kept.set(k, v),
      removeItem: (k) => kept.delete(k),
    };
  }
}

function read(box, key, otherwise) {
  try {
    return JSON.parse(box.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

const local = store("localStorage");
const prefix = `palaver:${rater}:`;
const draftsOf = (screen) => `palaver-draft:${rater}:${screen}:`;
const draftKey = draftsOf(assignment) + position;

const keysFrom = (start) => Array.from({ length: local.length }, (_, n) => local.key(n)).filter((k) => k.startsWith(start));

const outbox = {
  batches: () => keysFrom(prefix).sort().flatMap((k) => read(local, k, [])),
  add(batch) {
    const key = prefix + batch.assignment;
    const all = JSON.stringify([...read(local, key, []), batch]);
    try {
      local.setItem(key, all);
    } catch {
      unstored.push(batch); // the device is full: what cannot be kept can still be sent
    }
  },
  remove(batch) {
    const key = prefix + batch.assignment;
    const rest = read(local, key, []).filter((b) => b.id !== batch.id);
    if (rest.length) local.setItem(key, JSON.stringify(rest));
    else local.removeItem(key);
    const at = unstored.findIndex((b) => b.id === batch.id);
    if (at >= 0) unstored.splice(at, 1);
    for (const draft of keysFrom(draftsOf(batch.assignment))) local.removeItem(draft);
  },
};
const unstored = [];

function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID(); // only where the page came over TLS or from this machine
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// --- active seconds: only while the page is visible, and at most a minute after the last sign of life ---

const IDLE = 60_000;
const clock = {
  active: 0,
  since: document.hidden ? null : performance.now(),
  sign: performance.now(),
  settle() {
    const now = performance.now();
    if (clock.since !== null) clock.active += Math.max(0, Math.min(now, clock.sign + IDLE) - clock.since);
    clock.since = document.hidden ? null : now;
    clock.sign = now;
  },
};
for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchmove", "visibilitychange"]) {
  document.addEventListener(kind, clock.settle, { passive: true });
}
document.addEventListener("scroll", clock.settle, { passive: true, capture: true });
document.addEventListener("timeupdate", clock.settle, { passive: true, capture: true }); // somebody listens

function postJson(address, body) {
  return fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": token },
    body: JSON.stringify(body),
    cache: "no-store",
    signal: AbortSignal.timeout?.(30_000),
  });
}

// --- signs of life: while somebody is at the page, its screen stays theirs ---

const BEAT = 60_000;
const ASLEEP = 15 * 60_000;

async function beat() {
  if (document.hidden || performance.now() - clock.sign > ASLEEP) return;
  try {
    await postJson(alive, { assignment: Number(assignment) });
  } catch { /* the next one may get through */ }
}
setTimeout(beat, 5_000);
setInterval(beat, BEAT);

// --- the questions ---

const questions = [...form.querySelectorAll(".question")];
const inputs = (q) => [...q.querySelectorAll("input[name], textarea[name], select[name]")];
const typed = (input) => input.matches("[type=text], [type=number], textarea, select");

function value(q) {
  const all = inputs(q);
  if (q.dataset.kind === "number") return all[0].value.trim().replace(",", ".");
  if (q.dataset.kind === "text") return all[0].value.trim();
  const chosen = all.filter((i) => i.checked).map((i) => i.value);
  return q.dataset.kind === "boxes" ? chosen : (chosen[0] ?? "");
}

const answered = (q) => value(q).length > 0;

function checkBoxes() {
  for (const q of questions.filter((q) => q.dataset.kind === "boxes")) {
    const optional = q.hidden || q.querySelector(".optional") !== null;
    inputs(q)[0].setCustomValidity(optional || answered(q) ? "" : t("Tick at least one box."));
  }
}

form.addEventListener("change", (event) => {
  const box = event.target;
  if (box.type === "checkbox" && box.checked) {
    for (const other of inputs(box.closest(".question"))) {
      if (other !== box && (box.dataset.alone !== undefined || other.dataset.alone !== undefined)) {
        other.checked = false;
      }
    }
  }
  checkBoxes();
});

// --- a question may be asked only if another was answered so; the server decides by the same rule ---

function isAsked(q) {
  if (!q.dataset.shownIf) return true;
  const rule = JSON.parse(q.dataset.shownIf);
  const host = questions.find((h) => h.dataset.criterion === rule.criterion
    && h.dataset.position === q.dataset.position && (h.dataset.turn ?? q.dataset.turn) === q.dataset.turn);
  if (!host || !isAsked(host)) return false;
  const given = [value(host)].flat().filter((text) => text !== "");
  if (rule.values) return given.some((text) => rule.values.some((one) => one === text || Number(one) === Number(text)));
  const within = (text) => Number(text) >= (rule.low ?? -Infinity) && Number(text) <= (rule.high ?? Infinity);
  return given.some(within);
}

function showAsked(isNews = true) {
  const appeared = [];
  for (const q of questions.filter((q) => q.dataset.shownIf)) {
    const asked = isAsked(q);
    if (asked && q.hidden) appeared.push(q);
    q.hidden = !asked;
    for (const input of inputs(q)) {
      input.disabled = !asked; // what is hidden is neither checked nor reached by the keyboard
      if (input.type !== "checkbox") input.required = asked && !q.querySelector(".optional");
    }
  }
  checkBoxes();
  if (isNews && appeared.length) {
    const question = appeared[0].querySelector("legend, label").textContent.trim();
    say(t("One more question: {question}", { question }));
    appeared[0].scrollIntoView({ block: "nearest" }); // the bar may lie over it
  }
}

for (const kind of ["input", "change"]) form.addEventListener(kind, () => showAsked());

function focusOn(q) {
  const all = inputs(q);
  (all.find((i) => i.checked) ?? all[0]).focus();
}

const open = () => questions.find((q) => !q.hidden && !answered(q) && !q.querySelector(".optional"));

function onward() {
  const question = open();
  if (question) focusOn(question);
  else go.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey && event.key === "Enter") return form.requestSubmit(go);
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const at = event.target;
  if (at.matches("textarea, summary, a, button, audio")) {
    if (at !== go || !/^[0-9]$/.test(event.key)) return;
  }
  if (event.key === "Enter") {
    event.preventDefault();
    const q = at.closest(".question");
    if (q && answered(q) && at.checkValidity() && open()) onward(); // first to what is still open, then send
    else form.requestSubmit(go);
  } else if (/^[0-9]$/.test(event.key) && !at.matches("input[type=text], input[type=number], select")) {
    digit(event, at.closest(".question") ?? questions.find((q) => !q.hidden && !answered(q)));
  }
});

function digit(event, q) {
  if (!q) return;
  if (q.classList.contains("rank")) return inputs(q)[0].focus(); // and the list takes the digit
  if (q.dataset.kind === "number") return inputs(q)[0].select(); // and the digit is typed there
  if (q.dataset.kind === "text") return inputs(q)[0].focus();
  const choice = inputs(q).find((i) => i.dataset.key === event.key);
  if (!choice) return;
  event.preventDefault();
  choice.focus();
  choice.click();
  if (choice.type === "radio") onward();
}

// --- a draft survives a reload, and a tab that was closed ---

function saveDraft() {
  clock.settle();
  const values = questions.map((q) => inputs(q).map((i) => (typed(i) ? i.value : i.checked)));
  const comment = form.elements.comment?.value ?? "";
  try {
    local.setItem(draftKey, JSON.stringify({ values, comment, active: clock.active }));
  } catch { /* a draft that does not fit is only a draft */ }
}

function restoreDraft() {
  const draft = read(local, draftKey, null);
  if (!draft) return;
  clock.active = draft.active;
  questions.forEach((q, n) => inputs(q).forEach((input, m) => {
    const kept = draft.values[n]?.[m];
    if (kept === undefined) return;
    if (typed(input)) input.value = kept;
    else input.checked = kept;
  }));
  if (form.elements.comment && draft.comment) {
    form.elements.comment.value = draft.comment;
    form.elements.comment.closest("details").open = true;
  }
}

form.addEventListener("input", saveDraft);
window.addEventListener("pagehide", () => { if (!busy) saveDraft(); });

// --- sending ---

let busy = false;

function say(text, mood = "") {
  state.textContent = text;
  state.className = mood;
}

function lock(on) {
  busy = on;
  go.setAttribute("aria-disabled", String(on)); // not `disabled`: focus would be lost
  form.classList.toggle("busy", on);
}

function collect() {
  clock.settle();
  const given = questions.filter((q) => !q.hidden && answered(q));
  const now = Date.now() / 1000;
  const seconds = Math.round(clock.active) / 1000;
  return {
    id: uuid(),
    assignment: Number(assignment),
    comment: form.elements.comment?.value ?? "",
    comment_on: form.elements.comment_on ? Number(form.elements.comment_on.value) : null,
    answers: given.map((q) => ({
      id: uuid(),
      criterion: q.dataset.criterion,
      position: Number(q.dataset.position),
      turn: q.dataset.turn === undefined ? null : Number(q.dataset.turn),
      value: value(q),
      seconds, // the page's, for each of its answers
      given_at: now,
    })),
  };
}

class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function send(batch) {
  const { id, ...body } = batch;
  const reply = await postJson(post, body);
  if (reply.ok) return reply.json();
  if (reply.status >= 500 || reply.status === 429 || reply.status === 408) throw new Error("try again");
  const problem = await reply.json().catch(() => ({}));
  throw new Refusal(problem.error ?? t("The server did not accept this."), reply.status);
}

function pause(milliseconds) {
  return new Promise((resume) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      resume();
    }
    window.addEventListener("online", done);
  });
}

async function deliver() {
  // Sends everything that waits, oldest first; gives back the last reply.
  let wait = 1000;
  let reply = null;
  for (;;) {
    const batch = outbox.batches()[0] ?? unstored[0];
    if (!batch) return reply;
    try {
      reply = await send(batch);
      outbox.remove(batch);
      wait = 1000;
    } catch (error) {
      if (error instanceof Refusal) {
        if (error.status !== 401 && error.status !== 403) outbox.remove(batch);
        throw error;
      }
      say(t("Not sent yet. Your answer is kept on this device and sent when the connection is back."), "waiting");
      await pause(wait);
      say(t("Trying again…"), "waiting");
      wait = Math.min(wait * 2, 30_000);
    }
  }
}

async function run(prepare) {
  lock(true);
  try {
    prepare();
    const reply = await deliver();
    say(t("Saved"), "saved");
    location.replace(reply?.has_feedback ? `${feedback}/${assignment}` : next);
  } catch (error) {
    say(error.message, "problem");
    lock(false);
    if (error.status === 404 || error.status === 409) location.replace(next);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (busy) return;
  run(() => {
    outbox.add(collect());
    say(t("Saving…"));
  });
});

// A page that comes back from the browser's memory shows a screen that may be done.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// --- beginning ---

function markScrolling() {
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.scrollHeight > box.clientHeight + 1) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-labelledby", box.previousElementSibling.id);
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

restoreDraft();
showAsked(false);
markScrolling();
window.addEventListener("resize", markScrolling);
if (outbox.batches().length) run(() => say(t("Sending what was kept on this device…"), "waiting"));
