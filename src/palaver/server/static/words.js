// The words of scripts in the reader's language. English is the key; pages in other languages bring the rest.

const block = document.getElementById("words");
const words = block ? JSON.parse(block.textContent) : {};

export function t(text, values = {}) {
  return (words[text] ?? text).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
