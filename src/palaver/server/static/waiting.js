// The waiting page: counts down, and asks every few seconds whether there is something to do.

import { t } from "./words.js";

const box = document.getElementById("waiting");
const left = document.getElementById("left");
const end = performance.now() + Number(box.dataset.seconds) * 1000;
const PAUSE = 5000;

function count() {
  const seconds = Math.max(0, Math.ceil((end - performance.now()) / 1000));
  const minutes = Math.floor(seconds / 60);
  left.textContent = minutes ? t("{minutes} min {seconds} s", { minutes, seconds: seconds % 60 }) : t("{seconds} s", { seconds });
}

async function look() {
  try {
    const reply = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (!reply.ok || !page.getElementById("waiting")) return location.reload();
  } catch { /* the network is away: ask again */ }
  setTimeout(look, PAUSE * (0.8 + 0.4 * Math.random())); // not all at once
}

count();
setInterval(count, 1000);
setTimeout(look, PAUSE);
