// Tables can be sorted by their heads; without scripts they stay in the order in which they came.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === "" || y === "") return (x === "") - (y === ""); // undefined stays last
        const order = isNumber(x) && isNumber(y) ? x - y : x.localeCompare(y);
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
addEventListener("beforeprint", () => {
  for (const more of document.querySelectorAll("details.more")) more.open = true;
});
// Examples can be filtered; without scripts all of them are shown.
for (const form of document.querySelectorAll("form[data-filters]")) {
  const section = document.getElementById(form.dataset.filters);
  const examples = [...section.querySelectorAll(".example")];
  const filter = () => {
    const wanted = Object.fromEntries(
      [...form.querySelectorAll("[data-filter]")].map((field) => [field.dataset.filter, field.value.toLowerCase()]),
    );
    for (const example of examples) {
      const fits =
        (!wanted.why || example.dataset.why === wanted.why) &&
        (!wanted.system || example.dataset.system === wanted.system) &&
        (!wanted.text || example.textContent.toLowerCase().includes(wanted.text));
      example.hidden = !fits;
    }
    const shown = examples.filter((example) => !example.hidden).length;
    form.querySelector("output").textContent = `${shown} of ${examples.length} shown`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
