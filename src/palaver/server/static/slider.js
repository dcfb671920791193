// The slider: a line beside its number field. The field holds the answer, so nothing is preset; without this
// module the field alone is there.

import { t } from "./words.js";

const look = new CSSStyleSheet();
look.replaceSync(`
  .slider .field { flex-wrap: nowrap; gap: 1rem; }
  .slider .field input[type=number] { flex: none; width: 5.5rem; }
  .slider .field input[type=range] { flex: 1; width: 100%; min-width: 0; min-height: 2.75rem; margin: 0; accent-color: var(--accent); cursor: pointer; }
  .slider .field .hint { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .slider .ends { margin-inline-end: 6.5rem; }
  .slider .field .untouched { appearance: none; background: linear-gradient(var(--edge), var(--edge)) center / 100% 4px no-repeat; }
  .untouched::-webkit-slider-thumb { visibility: hidden; }
  .untouched::-moz-range-thumb { visibility: hidden; }
`);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, look];

function addLine(number) {
  const line = document.createElement("input");
  line.type = "range";
  for (const name of ["min", "max", "step"]) line[name] = number[name];
  line.setAttribute("aria-label", number.labels[0].textContent.trim());
  line.setAttribute("aria-describedby", number.getAttribute("aria-describedby"));

  function follow() {
    const answered = number.value !== "";
    line.classList.toggle("untouched", !answered);
    if (answered) {
      line.value = number.value;
      line.setAttribute("aria-valuetext", number.value);
    } else {
      line.setAttribute("aria-valuetext", t("not answered yet"));
    }
  }

  function answer() {
    if (number.value === line.value) return;
    number.value = line.value;
    number.dispatchEvent(new Event("input", { bubbles: true }));
  }

  line.addEventListener("input", answer);
  line.addEventListener("click", answer); // a click where the hidden thumb stands changes nothing, but is an answer
  line.addEventListener("keydown", (event) => { if (event.key === " ") answer(); });
  number.addEventListener("input", follow);
  number.before(line);
  follow();
}

document.querySelectorAll(".slider input[type=number]").forEach(addLine);
