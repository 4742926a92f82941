// SPDX-License-Identifier: Apache-2.0
// The planner page: a form, files that are dropped onto it, and the plan that the program's own code makes of them.
// The code is WebAssembly in this file (createPlanner, planner/page_entry.cpp), recordings of a network are unpacked when
// it is asked for.
"use strict";

const byId = id => document.getElementById(id);
const zoo = JSON.parse(byId("zoo").textContent);
const started = performance.now();
let planner = null;    // the WebAssembly module
let takenNetwork = ""; // whose recordings it has
let catalogue = null;
const files = {job: null, machine: null, recording: null};  // what was dropped: {name, text}

class Trouble extends Error {
  constructor(what, fix) { super(what); this.fix = fix; }
}

// --- The module -------------------------------------------------------------------------------------------------------

async function embedded(id) {
  const node = byId(id);
  const bytes = Uint8Array.from(atob(node.textContent.trim()), letter => letter.charCodeAt(0));
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

function missing() {
  if (typeof WebAssembly !== "object") return ["WebAssembly", "it may be switched off by a setting or a policy of this browser"];
  if (typeof DecompressionStream !== "function") return ["DecompressionStream", "Chrome and Edge have it from version 80 on, Safari from 16.4, Firefox from 113"];
  return null;
}

async function start() {
  const lacks = missing();
  if (lacks) throw new Trouble(`This browser has no ${lacks[0]}, in which the planner computes.`,
    `Open the page in a current Chrome, Edge, Firefox or Safari (${lacks[1]}); or run the program: lockstep plan job.json --on all`);
  planner = await createPlanner({wasmBinary: await embedded("wasm"), print: () => {}, printErr: text => console.warn(text)});
  catalogue = answer(planner._planner_catalogue()).catalogue;
}

function answer(pointer) {
  const said = JSON.parse(planner.UTF8ToString(pointer));
  if (said.error) throw new Trouble(said.error.what, said.error.fix);
  return said;
}

function copied(bytes) {
  const place = planner._malloc(bytes.length);
  planner.HEAPU8.set(bytes, place);
  return place;
}

const newText = text => copied(new TextEncoder().encode(`${text}\0`));

async function takeNetwork(name) {
  if (name === takenNetwork || !byId(`zoo-${name}`)) return;
  const bytes = await embedded(`zoo-${name}`);
  const place = copied(bytes);
  try { answer(planner._planner_take_network(place, bytes.length)); } finally { planner._free(place); }
  takenNetwork = name;
}

// The plan for these words behind `lockstep plan`, or the program's own complaint.
async function planFor(words, network) {
  if (network) await takeNetwork(network);
  const pointer = newText(JSON.stringify(words));
  try { return answer(planner._planner_plan(pointer)).plan; } finally { planner._free(pointer); }
}

function putFile(name, text) { planner.FS.writeFile(`/${name}`, text); }

// --- What is asked ----------------------------------------------------------------------------------------------------

const networkRow = () => zoo.networks.find(row => row.name === byId("network").value);

function merge(into, more) {
  for (const [key, value] of Object.entries(more)) {
    if (value && typeof value === "object" && !Array.isArray(value) && into[key]) merge(into[key], value);
    else into[key] = structuredClone(value);
  }
  return into;
}

function formJob() {
  const row = networkRow(), [recipe, classes] = byId("recipe").value.split("|");
  const job = {name: row.name, data: {train: "train", samples: Number(byId("samples").value)},
    model: {name: row.name, ...(Number(classes) && {classes: Number(classes)})},
    training: {global_batch: Number(byId("batch").value), epochs: Number(byId("epochs").value), precision: byId("precision").value}};
  return merge(job, zoo.recipes[recipe]);
}

const jobText = () => byId("job").value;

// Without comments, which documents may have: // and /* */, but not inside of a text.
const plainJson = text => text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/.*|\/\*[^]*?\*\//g, part => part[0] === '"' ? part : " ");

function networkOf(text) {
  try { return JSON.parse(plainJson(text)).model.name || ""; } catch { return ""; }
}

function wordsFor(levers) {
  const machine = files.machine ? files.machine.name : byId("on").value, gpus = byId("gpus").value;
  const words = ["--on", machine, ...(gpus === "1" && !isGpu(machine) ? [] : ["--gpus", gpus])];  // of a machine 1 and a node
  if (files.recording) {
    const samples = saysBatch(files.recording.text) ? [] : ["--batch", byId("batch").value];
    return ["--recording", files.recording.name, ...words, ...samples, "--samples", byId("samples").value, "--epochs", byId("epochs").value];
  }
  return [files.job ? files.job.name : "job.json", ...words, ...(levers ? ["--levers", levers] : ["--no-search"])];
}

// Whether a recording tells how many samples its step takes: lockstep.record(..., micro_batch=N).
function saysBatch(text) {
  try { return JSON.parse(text.slice(0, text.indexOf("\n"))).micro_batch > 0; } catch { return true; }
}

const isGpu = id => catalogue.gpus.some(gpu => gpu.id === id) || id === "all";
const quoted = word => /^[\w.,=:\/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

// What the search may turn: recomputation was recorded on one GPU; where a step of it is missing, less is turned.
function leverChoices() {
  if (files.recording) return [""];
  const alone = byId("gpus").value === "1" && !files.machine && isGpu(byId("on").value);
  return alone ? ["precision,micro_batch,recompute", "precision,micro_batch", ""] : ["precision,micro_batch", ""];
}

async function makePlan() {
  putFile(files.job ? files.job.name : "job.json", jobText());
  const network = files.recording ? "" : networkOf(jobText());
  const choices = leverChoices();
  for (const levers of choices) {
    const words = wordsFor(levers);
    try {
      return {words, plan: await planFor(words, network)};
    } catch (error) {
      const last = levers === choices[choices.length - 1];
      if (last || !(error instanceof Trouble) || !error.message.includes("is not recorded in this page (not with")) throw error;
    }
  }
}

// --- What is shown ----------------------------------------------------------------------------------------------------

function showTrouble(error) {
  const box = byId("trouble");
  box.hidden = !error;
  if (!error) return;
  box.replaceChildren(element("b", {}, error.message), error.fix ? element("p", {}, `fix: ${error.fix}`) : "");
}

let asked = 0;

async function show() {
  const mine = ++asked;
  byId("state").textContent = "Planning";
  await new Promise(done => setTimeout(done));  // the word is seen
  if (mine !== asked) return;
  const begin = performance.now();
  try {
    const {words, plan: made} = await makePlan();
    if (mine !== asked) return;
    const took = performance.now() - begin;
    showTrouble(null);
    byId("page").replaceChildren();
    drawPlan(byId("page"), made);
    byId("state").textContent = `${made.options.length} options planned in ${(took / 1000).toFixed(2)} s, in this page`;
    byId("command").textContent = `lockstep plan ${words.map(quoted).join(" ")}`;
    byId("terminal").hidden = false;
    Object.assign(document.documentElement.dataset, {drawn: "yes", planned: String(Math.round(took))});
  } catch (error) {
    if (mine !== asked) return;
    showTrouble(error);
    byId("state").textContent = "";
    byId("page").replaceChildren();
    byId("terminal").hidden = true;
    document.documentElement.dataset.drawn = "trouble";
  }
}

function listFiles() {
  byId("dropped").replaceChildren(...Object.entries(files).filter(([, file]) => file).map(([kind, file]) => {
    const drop = element("button", {type: "button", "aria-label": `leave out ${file.name}`}, "leave out");
    drop.addEventListener("click", () => {
      files[kind] = null;
      if (kind === "job") writeJob();
      listFiles();
      show();
    });
    return element("li", {}, element("b", {}, kind), element("span", {}, file.name), drop);
  }));
}

// --- The form ---------------------------------------------------------------------------------------------------------

function writeJob() { byId("job").value = `${JSON.stringify(formJob(), null, 2)}\n`; }

function fillRecipes() {
  const row = networkRow();
  byId("recipe").replaceChildren(...row.recipes.flatMap(recipe => row.classes.map(classes =>
    element("option", {value: `${recipe}|${classes}`}, classes ? `${recipe}, ${classes} classes` : recipe))));
}

function fillForm() {
  byId("network").append(...zoo.networks.map(row => element("option", {value: row.name}, row.title)));
  const gpus = element("optgroup", {label: "one kind of GPU"}, catalogue.gpus.map(gpu => element("option", {value: gpu.id}, gpu.name)));
  const machines = element("optgroup", {label: "machines"}, catalogue.machines.filter(row => row.plannable)
    .map(row => element("option", {value: row.id}, row.name)));
  byId("on").append(element("option", {value: "all"}, "every GPU"), gpus, machines);
  byId("network").value = zoo.first;
  byId("samples").value = 1281167;
  byId("epochs").value = 90;
  chooseNetwork();
}

function chooseNetwork() {
  fillRecipes();
  byId("batch").value = networkRow().batch;
  writeJob();
}

function fromForm() {
  if (files.job || files.recording) { files.job = files.recording = null; listFiles(); }
  writeJob();
  show();
}

// --- Files ------------------------------------------------------------------------------------------------------------

const safeName = (name, ending) => `${name.replace(/[^\w.-]/g, "_").replace(new RegExp(`\\${ending}$`), "") || "mine"}${ending}`;

function kindOf(name, text) {
  if (text.startsWith('{"format":"lockstep recording"') || /\.rec$/.test(name)) return "recording";
  const plain = plainJson(text);
  if (/"(gpu|gpus_per_node|cpu|cores_per_node)"\s*:/.test(plain) && !/"(training|model)"\s*:/.test(plain)) return "machine";
  return "job";
}

async function takeFiles(list) {
  for (const file of list) {
    const text = await file.text();
    const kind = kindOf(file.name, text);
    files[kind] = {name: safeName(file.name, kind === "recording" ? ".rec" : ".json"), text};
    if (kind === "job") { byId("job").value = text; files.recording = null; }
    if (kind === "recording") files.job = null;
    putFile(files[kind].name, text);
  }
  listFiles();
  await show();
}

function listen() {
  byId("form").addEventListener("submit", event => { event.preventDefault(); show(); });
  byId("network").addEventListener("change", () => { chooseNetwork(); fromForm(); });
  for (const id of ["precision", "recipe"]) byId(id).addEventListener("change", fromForm);
  for (const id of ["batch", "samples", "epochs"]) byId(id).addEventListener("change", () => files.recording ? show() : fromForm());
  byId("on").addEventListener("change", () => { if (files.machine) { files.machine = null; listFiles(); } show(); });
  byId("gpus").addEventListener("change", show);
  byId("job").addEventListener("change", () => { files.recording = null; listFiles(); show(); });
  byId("file").addEventListener("change", event => takeFiles([...event.target.files]));
  byId("open").addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); byId("file").click(); } });
  for (const kind of ["dragenter", "dragover"]) window.addEventListener(kind, event => { event.preventDefault(); document.body.classList.add("dropping"); });
  window.addEventListener("dragleave", event => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  window.addEventListener("drop", event => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    takeFiles([...event.dataTransfer.files]);
  });
}

(async () => {
  try {
    await start();
    fillForm();
    listen();
    document.documentElement.dataset.loaded = String(Math.round(performance.now() - started));
    await show();
  } catch (error) {
    showTrouble(error);
    byId("state").textContent = "";
    document.documentElement.dataset.drawn = "trouble";
  }
})();
