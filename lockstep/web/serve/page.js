// SPDX-License-Identifier: Apache-2.0
// A person drops an image and sees what the network sees in it.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  if (event.message) page.prepend(element("div", {id: "problem"}, `This page failed: ${event.message}`));
});

const percent = share => `${(100 * share).toFixed(1)} %`;

const input = element("input", {type: "file", id: "file", accept: "image/jpeg,image/png,image/webp,image/tiff"});
const drop = element("label", {id: "drop", for: "file"}, input, element("b", {}, data.task === "nowcast" ? "Drop frames of a radar here" : "Drop an image here"),
  element("span", {}, "or click, tap or press Enter to choose a file, or paste one. " + (data.task === "nowcast" ?
    "A strip of frames, PNG, as lockstep prep makes them." : "JPEG, PNG, WebP, TIFF.")));
const state = element("p", {id: "state", role: "status", "aria-live": "polite"});
const picture = element("img", {alt: "the image that was sent"});
const caption = element("figcaption", {});
const answers = element("ol", {id: "answers"});
const result = element("div", {id: "result", class: "grid wide-left", hidden: ""},
  element("div", {class: "panel"}, element("figure", {}, picture, caption)),
  element("div", {class: "panel"}, element("h3", {}, "What it sees"), answers));

page.replaceChildren(
  element("div", {class: "top"}, element("h1", {}, data.name), element("span", {class: "pill", tone: "blue"}, data.task)),
  element("p", {class: "lead"}, [data.network, `version ${data.version}`, data.which,
    data.classes.length ? `${data.classes.length} classes` : ""].filter(Boolean).join(" \u00b7 ")),
  drop, state, result,
  element("footer", {}, `lockstep ${data.lockstep}. The image goes to this server alone and is kept nowhere.`));

// ---------------------------------------------------------------- what a record says
function answer(name, words, share) {
  const bar = share === null ? null : element("div", {class: "bar"}, element("div", {style: {width: `${100 * share}%`}}));
  return element("li", {}, element("div", {class: "row"}, element("span", {}, name), element("b", {}, words)), bar);
}

function answersOf(record) {
  if (record.objects) {
    const found = record.objects.map(object => answer(object.class, percent(object.score), object.score));
    return found.length ? found : [answer("nothing found", "", null)];
  }
  if (record.regions)
    return record.regions.map(region => answer(region.class, `${percent(region.share)} of it`, region.share));
  if (record.caption !== undefined)
    return [answer(record.caption || "no words", `${percent(record.confidence)} a word`, null),
      ...record.words.map(each => answer(each.word, percent(each.probability), each.probability))];
  if (record.rain_area)
    return record.minutes.map((minutes, i) => answer(`in ${minutes} min`,
      `rain on ${percent(record.rain_area[i])}, ${record.peak_dbz[i]} dBZ`, record.rain_area[i]));
  const shares = record.classes || record.labels;
  if (Array.isArray(shares) && shares.every(each => each.name !== undefined))
    return shares.map(each => answer(each.name, percent(each.probability), each.probability));
  return Object.entries(record).filter(([key]) => key !== "model" && key !== "version").map(([key, value]) =>
    answer(key, typeof value === "number" ? value.toPrecision(6) : JSON.stringify(value), null));
}

// What is drawn by the server, as `lockstep predict --pictures` draws it: boxes, masks, regions, where it looked, frames; and
// what browsers do not show themselves.
const isDrawn = (record, file) => ["objects", "regions", "caption", "rain_area"].some(key => record[key] !== undefined) ||
  file.type === "image/tiff";

// ---------------------------------------------------------------- sending
let sending = null;  // the newest image counts

async function post(file, accept, signal) {
  const response = await fetch("/predict", {method: "POST", body: file, signal, headers: {Accept: accept}});
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Error(said.error || `the server answered ${response.status}`);
}

function show(address) {
  if (picture.src.startsWith("blob:")) URL.revokeObjectURL(picture.src);
  picture.src = address;
}

async function send(file) {
  if (sending) sending.abort();
  const mine = sending = new AbortController();
  state.className = "";
  state.textContent = `sending ${file.name || "the image"} ...`;
  const start = performance.now();
  try {
    const record = await (await post(file, "application/json", mine.signal)).json();
    const took = performance.now() - start;
    const shown = isDrawn(record, file) ? await (await post(file, "image/jpeg", mine.signal)).blob() : file;
    show(URL.createObjectURL(shown));
    caption.textContent = file.name || "";
    answers.replaceChildren(...answersOf(record));
    result.hidden = false;
    state.textContent = `answered in ${took.toFixed(0)} ms by version ${record.version}`;
    document.body.dataset.answered = "yes";
  } catch (wrong) {
    if (wrong.name === "AbortError") return;
    state.className = "wrong";
    state.textContent = `\u26a0 ${wrong.message}`;
    document.body.dataset.answered = "no";
  }
}

const imageIn = transfer => [...(transfer ? transfer.files : [])][0];

input.addEventListener("change", () => { if (input.files[0]) send(input.files[0]); input.value = ""; });
input.addEventListener("keydown", event => {
  if (event.key !== "Enter") return;
  event.preventDefault();  // some browsers ask for a file by themselves: once is enough
  input.click();
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, event => {
    event.preventDefault();
    drop.classList.toggle("over", name === "dragover");
    if (name === "drop" && imageIn(event.dataTransfer)) send(imageIn(event.dataTransfer));
  });
}
document.addEventListener("paste", event => { if (imageIn(event.clipboardData)) send(imageIn(event.clipboardData)); });
document.body.dataset.drawn = "yes";
