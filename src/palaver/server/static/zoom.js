// Images are enlarged in place. Without this module they open on a page of their own.

const dialog = document.getElementById("zoom");
const pan = dialog.querySelector(".pan");

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.picture");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const image = link.querySelector("img").cloneNode();
  pan.replaceChildren(image);
  dialog.setAttribute("aria-label", image.alt);
  dialog.showModal();
  pan.focus(); // so that the arrow keys move the image
});

// Keys on the image are not answers to the page below.
dialog.addEventListener("keydown", (event) => event.stopPropagation());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
