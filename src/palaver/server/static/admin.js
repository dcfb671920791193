// Keeps the admin's page up to date: asks for the state, and replaces the pieces that changed.

const PERIOD = 4000;
const pulse = document.getElementById("pulse");
const shown = new Map();
let failures = 0;
let timer = 0;

// Whoever is in the middle of the page stays there when a piece is replaced.
function whereabouts(section) {
  const scrolled = section.querySelector(".scroll")?.scrollLeft ?? 0;
  const opened = section.querySelector("details")?.open ?? false;
  const focused = section.contains(document.activeElement) ? document.activeElement : null;
  const cell = focused?.closest("td");
  const number = cell ? [...cell.querySelectorAll("button")].indexOf(focused) : -1;
  const row = focused?.closest("tr")?.dataset.rater;
  return () => {
    const table = section.querySelector(".scroll");
    if (table) table.scrollLeft = scrolled;
    const details = section.querySelector("details");
    if (details) details.open = opened;
    if (!focused) return;
    const buttons = row ? section.querySelectorAll(`tr[data-rater="${CSS.escape(row)}"] button`) : [];
    const again = buttons[Math.min(number, buttons.length - 1)] ?? section.querySelector(focused.localName === "summary" ? "summary" : ".scroll");
    again?.focus({ preventScroll: true });
  };
}

function place(pieces) {
  for (const [name, html] of Object.entries(pieces)) {
    const section = document.getElementById(name);
    if (!section || shown.get(name) === html) continue;
    if (section.querySelector(":active")) continue; // a button that is being pressed must not go away
    const goBack = whereabouts(section);
    section.innerHTML = html; // made by the server's templates, which escape all that is data
    goBack();
    shown.set(name, html);
  }
}

function say(text, state) {
  if (pulse.textContent !== text) pulse.textContent = text;
  pulse.dataset.state = state;
}

async function refresh() {
  clearTimeout(timer);
  try {
    const reply = await fetch(pulse.dataset.url, { headers: { accept: "application/json" } });
    if (reply.status === 401) {
      say("Signed out: a new admin link is needed", "stopped");
      return;
    }
    if (!reply.ok) throw new Error(String(reply.status));
    place((await reply.json()).page);
    failures = 0;
    say("Up to date", "live");
  } catch {
    failures += 1;
    say("No connection: trying again", "waiting");
  }
  if (!document.hidden) timer = setTimeout(refresh, PERIOD * Math.min(2 ** failures, 8));
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});

// Decisions without leaving the page; without this script the forms do the same.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.closest("#raters")) return;
  event.preventDefault();
  if (form.dataset.sent) return;
  form.dataset.sent = "yes"; // not `disabled`, which would take the focus away
  try {
    const reply = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { accept: "application/json" },
    });
    if (!reply.ok) throw new Error(String(reply.status));
    await refresh();
  } catch {
    form.submit();
  }
});

refresh();
