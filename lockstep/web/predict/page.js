// SPDX-License-Identifier: Apache-2.0
// The contact sheet of a collection: only the cells that can be seen are in the document, however many images there are.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  if (event.message) page.prepend(element("div", {id: "problem"}, `This page could not be drawn completely: ${event.message}`));
});

const whole = value => value.toLocaleString("en-US");
const palette = ["#e6194b", "#3cb44b", "#ffe119", "#0082c8", "#f58230", "#911eb4", "#46f0f0", "#f032e6", "#d2f53c", "#fabed4",
  "#008080", "#dcbeff", "#aa6e28", "#fffac8", "#800000", "#aaffc3", "#808000", "#ffd7b4", "#000080", "#808080"];
const colorOf = label => palette[label % palette.length];
const address = path => path.split("/").map(encodeURIComponent).join("/");

// ---------------------------------------------------------------- what there is
// A row: path, link (empty: the path), thumbnail, picture, width, height, "class score x y w h;...", words, failed
const images = data.rows.map(([path, link, thumbnail, picture, width, height, answers, words, failed]) => ({
  path, link: link || path, thumbnail, picture, width, height, words, failed,
  answers: answers ? answers.split(";").map(each => each.split(" ").map(Number)) : [],
}));
const hasBoxes = images.some(image => image.answers.length && image.answers[0].length === 6);

const choice = {name: "", label: -1, least: 0, most: 1, show: "all", sort: "order"};
let shown = [];  // the images that pass, in their order

const counts = (answer) => answer[1] >= choice.least && answer[1] <= choice.most;
const chosen = answer => counts(answer) && (choice.label < 0 || answer[0] === choice.label);

function passes(image) {
  if (choice.name && !image.path.toLowerCase().includes(choice.name)) return false;
  if (choice.show === "failed") return image.failed;
  const found = image.answers.some(chosen);
  if (choice.show === "found") return found;
  if (choice.show === "nothing") return !found && !image.failed;
  const isOpen = choice.label < 0 && choice.least <= 0 && choice.most >= 1;
  return isOpen || found;
}

const surest = image => image.answers.reduce((most, answer) => chosen(answer) ? Math.max(most, answer[1]) : most, -1);
const orders = {
  order: null,
  surest: (a, b) => surest(b) - surest(a),
  unsure: (a, b) => surest(a) - surest(b),
  many: (a, b) => b.answers.filter(chosen).length - a.answers.filter(chosen).length,
};

// ---------------------------------------------------------------- filters
const countText = element("div", {id: "count", role: "status"});
const classList = element("select", {id: "class"});

function named(name, ...controls) { return element("label", {}, name, ...controls); }

function slider(key, name) {
  const told = element("b", {}), input = element("input", {type: "range", min: 0, max: 1, step: 0.01, id: key, "aria-label": name});
  input.addEventListener("input", () => { choice[key] = Number(input.value); update(); });
  return {node: named(name, element("span", {class: "range"}, input, told)),
    set: () => { input.value = choice[key]; told.textContent = choice[key].toFixed(2); }};
}

function selection(id, rows, key) {
  const list = element("select", {id}, rows.map(([value, name]) => element("option", {value}, name)));
  list.addEventListener("change", () => { choice[key] = list.value; update(); });
  return {list, set: () => { list.value = choice[key]; }};
}

const least = slider("least", "confidence from"), most = slider("most", "to");
const show = selection("show", [["all", "all"], ["found", "something found"], ["nothing", "nothing found"], ["failed", "not readable"]], "show");
const sort = selection("sort", [["order", "by collection"], ["surest", "surest first"], ["unsure", "least sure first"]].concat(hasBoxes ? [["many", "most objects first"]] : []), "sort");
const search = element("input", {type: "search", placeholder: "part of a name", id: "name"});
search.addEventListener("input", () => { choice.name = search.value.toLowerCase(); update(); });
classList.addEventListener("change", () => { choice.label = Number(classList.value); update(); });
const reset = element("button", {type: "button"}, "reset");
reset.addEventListener("click", () => { Object.assign(choice, {name: "", label: -1, least: 0, most: 1, show: "all", sort: "order"}); search.value = ""; update(); });

// Images by class within the chosen confidence.
function countClasses() {
  const found = new Array(data.classes.length).fill(0);
  for (const image of images) for (const label of new Set(image.answers.filter(counts).map(answer => answer[0]))) found[label]++;
  const order = [...found.keys()].filter(label => found[label] > 0 || label === choice.label).sort((a, b) => found[b] - found[a]);
  classList.replaceChildren(element("option", {value: -1}, "all classes"),
    ...order.map(label => element("option", {value: label}, `${data.classes[label]} (${whole(found[label])})`)));
  classList.value = choice.label;
}

// The choice stands in the address, so that a link leads to the same view.
function remember() {
  const words = [];
  if (choice.name) words.push(`name=${encodeURIComponent(choice.name)}`);
  if (choice.label >= 0) words.push(`class=${encodeURIComponent(data.classes[choice.label])}`);
  for (const [key, plain] of [["least", 0], ["most", 1], ["show", "all"], ["sort", "order"]]) if (choice[key] !== plain) words.push(`${key}=${choice[key]}`);
  history.replaceState(null, "", words.length ? `#${words.join("&")}` : location.pathname + location.search);
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (key, plain) => words.has(key) && Number.isFinite(Number(words.get(key))) ? Math.min(1, Math.max(0, Number(words.get(key)))) : plain;
  choice.name = (words.get("name") || "").toLowerCase();
  choice.label = data.classes.indexOf(words.get("class"));
  choice.least = number("least", 0);
  choice.most = number("most", 1);
  choice.show = ["all", "found", "nothing", "failed"].includes(words.get("show")) ? words.get("show") : "all";
  choice.sort = words.get("sort") in orders ? words.get("sort") : "order";
  search.value = choice.name;
}

function update() {
  const before = performance.now();
  shown = images.filter(passes);
  if (orders[choice.sort]) shown.sort(orders[choice.sort]);
  for (const control of [least, most, show, sort]) control.set();
  countClasses();
  countText.replaceChildren(element("b", {}, whole(shown.length)), ` of ${whole(images.length)} image${images.length === 1 ? "" : "s"}`);
  for (const cell of cells.values()) cell.remove();
  cells.clear();
  lay();
  remember();
  grid.dataset.filterMs = (performance.now() - before).toFixed(1);
}

// ---------------------------------------------------------------- cells
const grid = element("div", {id: "grid"});
const cells = new Map();  // those in the document, by their number in `shown`
const kGap = 14, kWords = 58, kLeastWidth = 196;
const layout = {columns: 1, width: 200, height: 200};

function answerWords(image, most) {
  if (image.failed) return [element("span", {class: "none"}, "not readable")];
  const found = image.answers.filter(counts);
  if (!image.answers.length) return [element("span", {class: "none"}, image.words || "nothing found")];
  if (!found.length) return [element("span", {class: "none"}, "nothing in this range")];
  const words = found.slice(0, most).map(([label, score]) => element("span", {}, element("i", {style: {background: colorOf(label)}}), `${data.classes[label]} ${score.toFixed(2)}`));
  if (found.length > most) words.push(element("span", {class: "none"}, `+${found.length - most}`));
  return words;
}

function boxes(image) {
  if (!image.width || !image.answers.some(answer => answer.length === 6)) return null;
  const drawing = shape("svg", {viewBox: `0 0 ${image.width} ${image.height}`, preserveAspectRatio: "xMidYMid meet"});
  for (const [label, , x, y, width, height] of image.answers.filter(chosen)) drawing.append(shape("rect", {x, y, width, height, stroke: colorOf(label)}));
  return drawing;
}

function thumbnailOf(image, frame) {
  const picture = element("img", {alt: ""});
  picture.addEventListener("error", () => { picture.remove(); frame.prepend(element("div", {class: "why missing"}, "its thumbnail is not there")); });
  picture.src = `${address(data.files)}/thumbnails/${image.thumbnail}`;
  return picture;
}

function makeCell(number) {
  const image = shown[number];
  const frame = element("div", {class: "frame", style: {height: `${layout.height - kWords}px`}});
  if (image.failed) frame.append(element("div", {class: "why"}, image.words));
  else frame.append(thumbnailOf(image, frame), boxes(image) || "");
  const cell = element("button", {class: "cell", type: "button", title: image.path, style: {width: `${layout.width}px`, height: `${layout.height}px`,
    left: `${(number % layout.columns) * (layout.width + kGap)}px`, top: `${Math.floor(number / layout.columns) * (layout.height + kGap)}px`}},
    frame, element("div", {class: "words"}, element("div", {class: "file"}, image.path.split("/").pop()), element("div", {class: "answers"}, answerWords(image, 2))));
  cell.addEventListener("click", () => open(number));
  return cell;
}

function lay() {
  const room = grid.clientWidth || page.clientWidth;
  layout.columns = Math.max(1, Math.floor((room + kGap) / (kLeastWidth + kGap)));
  layout.width = Math.floor((room - (layout.columns - 1) * kGap) / layout.columns);
  layout.height = Math.round(layout.width * 0.78) + kWords;
  const rows = Math.ceil(shown.length / layout.columns);
  grid.style.height = `${Math.max(0, rows * (layout.height + kGap) - kGap)}px`;
  draw();
}

// Two rows more than can be seen, above and below.
function draw() {
  const top = -grid.getBoundingClientRect().top, step = layout.height + kGap;
  const first = Math.max(0, Math.floor(top / step) - 2) * layout.columns;
  const last = Math.min(shown.length, (Math.ceil((top + window.innerHeight) / step) + 2) * layout.columns);
  for (const [number, cell] of cells) {
    if (number >= first && number < last) continue;
    cell.remove();
    cells.delete(number);
  }
  for (let number = first; number < last; number++) {
    if (cells.has(number)) continue;
    const cell = makeCell(number);
    cells.set(number, cell);
    grid.append(cell);
  }
  nothing.hidden = shown.length > 0;
}

// ---------------------------------------------------------------- one image
const dialog = element("dialog", {});
let opened = 0;

function open(number) {
  opened = Math.min(shown.length - 1, Math.max(0, number));
  const image = shown[opened];
  const picture = element("img", {alt: image.path});
  const original = element("a", {href: address(image.link), target: "_blank", rel: "noopener"}, "the image itself");
  if (!image.failed) {
    picture.addEventListener("error", () => { if (!picture.dataset.again) { picture.dataset.again = 1; picture.src = address(image.link); } });
    picture.src = `${address(data.files)}/pictures/${address(image.picture)}`;
  }
  const button = (words, step) => {
    const node = element("button", {type: "button", "aria-label": step < 0 ? "previous image" : "next image"}, words);
    node.addEventListener("click", () => open(opened + step));
    return node;
  };
  const close = element("button", {type: "button"}, "close");
  close.addEventListener("click", () => dialog.close());
  const table = element("table", {}, image.answers.map(([label, score]) => element("tr", {}, element("td", {}, element("i", {style: {background: colorOf(label)}}), data.classes[label]), element("td", {class: "number"}, score.toFixed(3)))));
  dialog.replaceChildren(
    element("div", {class: "bar"}, element("b", {title: image.path}, image.path), element("span", {class: "quiet"}, `${whole(opened + 1)} of ${whole(shown.length)}`), button("\u2190", -1), button("\u2192", 1), close),
    element("div", {class: "inside"}, element("div", {class: "shown"}, image.failed ? element("p", {class: "quiet"}, image.words) : picture),
      element("div", {class: "side"}, image.answers.length ? table : element("p", {class: "quiet"}, image.failed ? "not readable" : image.words || "nothing found"),
        element("p", {}, original), image.width ? element("p", {class: "quiet"}, `${image.width} \u00d7 ${image.height} pixels`) : null)));
  if (!dialog.open) dialog.showModal();
}

dialog.addEventListener("keydown", event => {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step) { open(opened + step); event.preventDefault(); }
});
dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });

// ---------------------------------------------------------------- the page
const nothing = element("p", {class: "nothing"}, "No image passes these filters.");
const lead = [`model ${data.model}`, `${whole(data.images)} image${data.images === 1 ? "" : "s"}`, data.failed ? `${whole(data.failed)} not readable` : null,
  data.images > images.length ? `the first ${whole(images.length)} are shown here, all of them are in ${data.name}` : null];
page.append(element("div", {class: "top"}, element("h1", {}, data.name)), element("p", {class: "lead"}, lead.filter(Boolean).join(" \u00b7 ")),
  element("div", {id: "filters"}, named("class", classList), least.node, most.node, named("show", show.list), named("sort", sort.list), named("search", search), reset, countText),
  nothing, grid, dialog);
recall();
update();
grid.dataset.openMs = performance.now().toFixed(1);
document.documentElement.dataset.drawn = "yes";
window.addEventListener("scroll", () => requestAnimationFrame(draw), {passive: true});
window.addEventListener("resize", () => { for (const cell of cells.values()) cell.remove(); cells.clear(); lay(); });
