// What people have been given to read.

import { t } from "./words.js";

const part = (id) => document.getElementById(id);
const drawer = part("drawer");
const room = part("room");
let unseen = 0;

function make(name, text, ...children) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  element.append(...children);
  if (name === "p") element.dir = "auto"; // what is read need not be in the language of the page
  return element;
}

function makeSection(name, title, ...children) {
  const section = make("details", "", make("summary", title), ...children);
  section.id = `read-${name}`;
  section.open = true;
  return section;
}

// The names of the sections that there are to read; nothing where there are none.
export async function loadReading(url) {
  const reply = await fetch(url).catch(() => null);
  const shelf = reply?.ok ? await reply.json() : null;
  if (!shelf) return null;
  const parts = [make("h2", t("Factual sections"))];
  const names = [];
  for (const { name, title, lead, facts } of shelf.factual) {
    names.push(name);
    const list = make("ul", "", ...facts.map((fact) => make("li", fact)));
    list.dir = "auto";
    parts.push(makeSection(name, `${name} · ${title}`, make("p", lead), list));
  }
  if (shelf.article) {
    parts.push(make("h2", t("Article: {title}", { title: shelf.article.title })));
    for (const { name, text } of shelf.article.parts) {
      names.push(name);
      parts.push(makeSection(name, name, make("p", text)));
    }
  }
  const links = names.map((name) => {
    const link = make("button", name);
    link.type = "button";
    link.addEventListener("click", () => {
      part(`read-${name}`).open = true;
      part(`read-${name}`).scrollIntoView({ block: "start" });
    });
    return link;
  });
  const sections = make("nav", "", ...links);
  sections.setAttribute("aria-label", t("Sections"));
  const reading = part("reading");
  reading.tabIndex = 0;
  reading.replaceChildren(sections, ...parts);
  reading.hidden = false;
  drawer.hidden = false;
  room.classList.add("reads");
  return new Set(names);
}

function label() {
  const isOpen = room.classList.contains("reading-open");
  drawer.setAttribute("aria-expanded", String(isOpen));
  const back = unseen ? t("Back to the conversation ({n} new)", { n: unseen }) : t("Back to the conversation");
  drawer.textContent = isOpen ? back : t("Show what to read");
}

// Messages came while somebody reads.
export function countNews(n) {
  if (!room.classList.contains("reading-open")) return;
  unseen += n;
  label();
}

drawer.addEventListener("click", () => {
  room.classList.toggle("reading-open");
  unseen = 0;
  label();
});
