// SPDX-License-Identifier: Apache-2.0
// Lays out the report from the data in this file.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This report could not be drawn completely: ${event.message}`));
});

function section(title, ...content) {
  page.append(element("h2", {}, title), ...content);
}

function facts(rows) {
  const list = element("dl", {});
  for (const [name, value] of rows) {
    if (value !== undefined && value !== null && value !== "") list.append(element("dt", {}, name), element("dd", {}, String(value)));
  }
  return list;
}

// ---------------------------------------------------------------- head
const start = data.start || {}, end = data.end || {}, evaluation = data.evaluation;
// What the task calls its figures; runs of earlier versions could only classify.
const words = start.report || {title: "Accuracy", share: true, higher_is_better: true, training: "accuracy", validation: "top1", also: {"top-5": "top5"}};
const classCount = (data.evaluation && data.evaluation.classes || []).length || start.classes;
if (isNumber(classCount) && classCount < 6) delete words.also["top-5"];  // five answers of five classes are always right
const headlineOf = each => each[words.validation];
const figureText = value => words.share ? percent(value) : compact(value);
const checks = data.evaluations.filter(each => isNumber(headlineOf(each)));
const lastCheck = checks[checks.length - 1];
const isBetter = (a, b) => words.higher_is_better ? a > b : a < b;
const bestCheck = checks.reduce((best, each) => !best || isBetter(headlineOf(each), headlineOf(best)) ? each : best, null);
const alsoText = each => Object.entries(words.also).filter(([, key]) => isNumber(each[key])).map(([name, key]) => `${name} ${figureText(each[key])}`).join(", ");

// Which part of the data the evaluation saw; those of earlier versions tell the folder alone.
const partWords = {validate: "validation", test: "test", train: "training"};
function evaluatedPart() {
  const folders = (data.job || {}).data || {};
  return partWords[evaluation.part || Object.keys(partWords).find(part => folders[part] && folders[part] === evaluation.data)] || "";
}
const part = evaluation ? evaluatedPart() : "validation";
const capital = word => word.charAt(0).toUpperCase() + word.slice(1);
const evaluatedImages = () => `${whole(evaluation.samples)} ${part ? `${part} ` : ""}image${evaluation.samples === 1 ? "" : "s"}`;

function drawHead() {
  page.append(element("div", {class: "top"}, element("h1", {}, start.name || data.name), statusPill(data.status)));
  const parts = [start.name && start.name !== data.name ? `run ${data.name}` : null, start.model, isNumber(start.parameters) ? `${compact(start.parameters)} parameters` : null,
    isNumber(start.classes) && !(start.class_names && !start.class_names.length) ? `${start.classes} classes` : null,
    isNumber(start.train_samples) ? `${whole(start.train_samples)} training images` : null,
    [start.device, start.precision].filter(Boolean).join(", ")];
  page.append(element("p", {class: "lead"}, parts.filter(Boolean).join(" \u00b7 ")));
}

function drawCards() {
  const cards = element("div", {class: "cards"});
  const add = (label, value, note, code) => cards.append(element("div", {class: cards.children.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: code ? "value code" : "value"}, value), element("div", {class: "note"}, note || "")));
  // The best by validation, as eval and predict take it, unless `report --weights` asked for others.
  const asked = data.weights === "last" ? lastCheck : /^[0-9]+$/.test(data.weights || "") ? checks.find(each => each.step === Number(data.weights)) : bestCheck;
  const shown = evaluation && isNumber(headlineOf(evaluation)) ? evaluation : asked;
  if (shown) {
    const note = shown === evaluation ? [evaluatedImages(), evaluation.which ? `weights: ${evaluation.which}` : null, alsoText(evaluation)].filter(Boolean).join(", ")
      : [`weights: ${shown === bestCheck ? "best, " : shown === lastCheck ? "last, " : ""}step ${shown.step}`, alsoText(shown)].filter(Boolean).join(", ");
    add(words.title, figureText(headlineOf(shown)), note);
    const lossOf = shown === evaluation ? part : "validation";
    if (shown.loss !== undefined) add(lossOf ? `${capital(lossOf)} loss` : "Loss", isNumber(shown.loss) ? shown.loss.toFixed(3) : "not finite",
      shown !== evaluation && isNumber(shown.epoch) ? `epoch ${compact(shown.epoch)}` : evaluation && evaluation.data || "");
  }
  const lastStep = data.steps[data.steps.length - 1];
  if (!shown && lastStep && isNumber(lastStep.loss)) add("Training loss", lastStep.loss.toFixed(3), "no evaluation yet");
  const spent = Object.values(data.time).reduce((a, b) => a + b, 0);
  if (spent > 0) add("Training time", duration(isNumber(end.seconds) ? end.seconds : spent), lastStep ? `${whole(lastStep.step)} steps` : "");
  if (isNumber(data.samples_per_second)) add("Throughput", `${compact(data.samples_per_second)}/s`, "images, all ranks");
  if (isNumber(data.joules)) add("Energy", `${compact(data.joules / 3.6e6)}\u00a0kWh`, "GPU of rank 0, its steps and evaluations");
  if (isNumber(start.ranks)) add(start.ranks === 1 ? "Rank" : "Ranks", String(start.ranks), isNumber(start.threads) ? `${start.threads} thread${start.threads === 1 ? "" : "s"} each` : "");
  if (start.seed !== undefined) add("Seed", String(start.seed), isNumber(start.global_batch) ? `global batch ${start.global_batch}` : "");
  if (end.weights_sha256) add("Weights", end.weights_sha256.slice(0, 12), "SHA-256, first 12 digits", true);
  if (cards.children.length) page.append(cards);
}

// The run as one line of the table that the task's readers know, where it has one.
function drawRow() {
  const check = bestCheck || lastCheck;
  if (!words.row || !check) return;
  const lastStep = data.steps[data.steps.length - 1] || {};
  const trained = ["data wait", "compute", "communication", "save", "other"].reduce((sum, name) => sum + (data.time[name] || 0), 0);
  const cells = [[start.device === "cpu" ? "ranks" : "GPUs", String(start.ranks || "")], ["steps", whole(lastStep.step || 0)], ["training time (h)", (trained / 3600).toPrecision(3)],
    ...Object.entries(words.row).map(([name, key]) => [name, isNumber(check[key]) ? check[key].toFixed(3) : "\u2013"]),
    ["images/s", isNumber(data.samples_per_second) ? compact(data.samples_per_second) : "\u2013"],
    ["evaluation (ms per image)", isNumber(check.seconds) && check.samples ? compact(1000 * check.seconds * (start.ranks || 1) / check.samples) : "\u2013"]];
  section("The run in one row", element("div", {class: "panel"}, element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, cells.map(([name]) => element("th", {class: "number"}, name)))),
    element("tbody", {}, element("tr", {}, cells.map(([, value]) => element("td", {class: "number"}, value))))))));
}

// ---------------------------------------------------------------- curves
const byEpoch = data.steps.length > 0 && data.steps.every(each => isNumber(each.epoch));
const xName = byEpoch ? "epoch" : "step";
const xOf = each => byEpoch ? each.epoch : each.step;
const pointsOf = (rows, key) => rows.filter(each => isNumber(each[key]) && isNumber(xOf(each))).map(each => [xOf(each), each[key]]);

const scoreTones = ["blue", "orange", "violet", "green", "grey", "cyan"];  // training, validation, what stands beside them

function drawCurves() {
  const digits = value => value.toFixed(3);
  section("Learning", element("div", {class: "grid"},
    lineChart({title: "Loss", xName, format: digits, fromZero: true, series: [
      ...withTrend("training", "blue", pointsOf(data.steps, "loss")),
      {name: "validation", tone: "orange", points: pointsOf(data.evaluations, "loss"), dots: true}]}),
    lineChart({title: words.title, xName, format: figureText, fromZero: true,
      ...(words.share ? {axis: value => `${Math.round(100 * value)} %`, top: 1} : {}),
      empty: "No evaluation yet.", series: [
        ...withTrend("training", "blue", pointsOf(data.steps, words.training)),
        ...Object.entries(words.also).map(([name, key], i) => ({name, tone: scoreTones[2 + i % (scoreTones.length - 2)], points: pointsOf(data.evaluations, key), dots: true})),
        {name: "validation", tone: "orange", points: pointsOf(data.evaluations, words.validation), dots: true}]})));
  section("Speed", element("div", {class: "grid"},
    lineChart({title: "Throughput, images per second", xName, format: value => compact(value), fromZero: true,
      series: withTrend("all ranks", "green", pointsOf(data.steps, "samples_per_second"))}),
    lineChart({title: "Learning rate", xName, format: rateText, axis: rateText, fromZero: true, series: [{name: "rate", tone: "violet", points: pointsOf(data.steps, "lr")}]})));
}

function drawTime() {
  const panel = timePanel(data.time);
  if (panel) page.append(panel);
  const slow = slowPanel(data.slowness);
  if (slow) page.append(slow);
}

// ---------------------------------------------------------------- mistakes
function bar(share, tone) {
  return element("div", {class: "bar"}, element("div", {tone, style: {width: `${Math.max(0, Math.min(100, 100 * share)).toFixed(1)}%`}}));
}

function confusedPairs() {
  const list = element("ul", {class: "pairs"});
  const pairs = (evaluation.most_confused || []).slice(0, 10);
  const sizes = Object.fromEntries((evaluation.classes || []).map(each => [each.name, each.samples]));
  for (const pair of pairs) {
    const of = sizes[pair.target];
    list.append(element("li", {}, element("div", {class: "row"},
      element("span", {}, `${pair.target} \u2192 ${pair.predicted}`), element("span", {}, of ? `${pair.count} of ${of}` : String(pair.count))),
      bar(pair.count / (of || pairs[0].count), "orange")));
  }
  return element("div", {class: "panel"}, element("h3", {}, "Most often confused"),
    pairs.length ? list : element("p", {class: "quiet"}, "No mistakes."));
}

function classTable() {
  const figures = {average_precision: "average precision", precision: "precision", recall: "recall", f1: "F1", iou: "IoU", accuracy: "found"};
  const shown = Object.keys(figures).filter(key => evaluation.classes.some(each => isNumber(each[key])));
  const weakness = each => [each.average_precision, each.f1, each.iou].find(isNumber);
  const ofPixels = evaluation.classes.some(each => isNumber(each.pixels));
  const rows = [...evaluation.classes].sort((a, b) => weakness(a) - weakness(b));
  const body = element("tbody", {});
  for (const each of rows) {
    const cells = shown.map(key => isNumber(each[key]) ? element("td", {}, percent(each[key]), bar(each[key], "blue")) : element("td", {}, "-"));
    body.append(element("tr", {}, element("td", {}, each.name), element("td", {class: "number"}, whole(ofPixels ? each.pixels : each.samples)), cells));
  }
  const head = ["class", ofPixels ? "pixels" : "images", ...shown.map(key => figures[key])].map((name, i) => element("th", {class: i === 1 ? "number" : ""}, name));
  return element("details", {class: "panel below", style: {marginTop: "16px"}}, element("summary", {}, `Every class, weakest first (${rows.length})`),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, head)), body)));
}

const named = answer => isNumber(answer) ? compact(answer) : answer === "" ? "nothing" : answer;

// The file, and its folder where that is not its class; the rest stands in the tip.
function shortName(name, target) {
  const [folder, file] = String(name).split("/").slice(-2);
  return file === undefined ? folder : folder === target ? file : `${folder}/${file}`;
}

const isPicture = value => typeof value === "string" && /^data:image\/(jpeg|png);base64,/.test(value);

// What it is and what was said of it; of a forecast and of pixels, which no word tells, how far it is off.
function answerOf(each) {
  if (each.target !== undefined && !each.animation) {
    return ["is ", element("b", {}, named(each.target)), element("br"), "said ", element("span", {class: "wrong"}, named(each.predicted)),
      isNumber(each.confidence) ? ` ${percent(each.confidence)}` : ""];
  }
  return ["loss ", element("span", {class: "wrong"}, compact(each.loss)), isNumber(each.pixel_accuracy) ? `, ${percent(each.pixel_accuracy)} of the pixels right` : ""];
}

function gallery() {
  const drawn = evaluation.worst.some(each => each.drawn || each.text);
  const all = element("div", {class: evaluation.task === "caption" ? "gallery broad" : drawn ? "gallery wide" : "gallery"});
  const sure = evaluation.worst.every(each => isNumber(each.confidence));
  const worst = sure ? [...evaluation.worst].sort((a, b) => b.confidence - a.confidence) : evaluation.worst;
  for (const each of worst) {
    const name = each.name || each.path || "";
    all.append(element("figure", {title: [name, each.path].filter((each, i, all) => each && all.indexOf(each) === i).join("\n")},
      isPicture(each.animation) ? element("img", {src: each.animation, alt: name, loading: "lazy"})
        : isPicture(each.picture) ? element("img", {src: each.picture, alt: name, loading: "lazy"})
        : each.text ? element("blockquote", {}, each.text) : element("div", {class: "blank"}),
      isPicture(each.heat) ? element("img", {src: each.heat, alt: `what the answer for ${name} rests on`, loading: "lazy"}) : null,
      element("figcaption", {}, answerOf(each), name ? element("div", {class: "name"}, shortName(name, each.target)) : null)));
  }
  return element("div", {class: "panel below", style: {marginTop: "16px"}},
    element("div", {class: "head"}, element("h3", {}, "Worst mistakes"), element("span", {class: "legend"}, sure ? "surest first: look for wrong labels" : "largest error first")), all);
}

// What a task's score has to show besides: [{title, x, share, higher_is_better, series: [{name, points: [[x, y], ...]}]}].
function drawScoreCurves() {
  const curves = evaluation && evaluation.curves;
  if (!Array.isArray(curves) || !curves.length) return;
  const tones = ["blue", "grey", "orange", "violet", "green"];
  section(`${evaluation.curves_of || "Over the lead time"}${part ? `, ${part} data` : ""}`, element("div", {class: "grid"}, curves.map(each => lineChart({
    title: each.title, xName: each.x, format: each.share ? percent : compact, fromZero: true,
    ...(each.share ? {axis: value => `${Math.round(100 * value)} %`, top: 1} : {}),
    series: each.series.map((one, i) => ({name: one.name, tone: tones[i % tones.length], points: one.points, dots: true}))}))));
}

function drawMistakes() {
  if (!evaluation) return;
  if (!evaluation.classes) {
    if (evaluation.worst && evaluation.worst.length) section("What it gets wrong", gallery());
    return;
  }
  if (!evaluation.most_confused) {  // several labels an image: one is not taken for another
    section(`What it gets right and wrong${part ? ` on the ${part} images` : ""}`);
    if (evaluation.worst && evaluation.worst.length) page.append(gallery());
    page.append(classTable());
    return;
  }
  const names = evaluation.classes.map(each => each.name);
  const matrix = evaluation.confusion
    ? [element("div", {class: "head"}, element("h3", {}, "Confusion matrix"),
        element("div", {class: "legend"}, element("span", {}, "row: what it is, column: what the network said"),
          element("span", {}, element("i", {tone: "blue"}), "right"), element("span", {}, element("i", {tone: "orange"}), "wrong"))),
      confusionChart(names, evaluation.confusion)]
    : [element("h3", {}, "Confusion matrix"), element("p", {class: "quiet"}, `${names.length} classes are too many to draw; the pairs beside tell the most.`)];
  section(`What it gets right and wrong${part ? ` on the ${part} images` : ""}`, element("div", {class: "grid wide-left"}, element("div", {class: "panel"}, matrix), confusedPairs()));
  if (evaluation.worst && evaluation.worst.length) page.append(gallery());
  page.append(classTable());
}

// ---------------------------------------------------------------- how far to trust it
const diagonal = {name: "perfect", tone: "grey", points: [[0, 0], [1, 1]], faint: true};
const binsOf = figures => figures.bins.filter(bin => bin.rows > 0).map(bin => [bin.confidence, bin.accuracy]);

function trustTable(trust) {
  const rows = [["as the network says", trust.raw], trust.calibrated ? [`at temperature ${trust.temperature.toFixed(3)}`, trust.calibrated] : null].filter(Boolean);
  const cell = (value, digits) => element("td", {class: "number"}, isNumber(value) ? value.toFixed(digits) : "\u2013");
  const table = element("table", {}, element("thead", {}, element("tr", {}, ["confidence", "ECE", "Brier", "NLL", "mean"].map((name, i) => element("th", {class: i ? "number" : ""}, name)))),
    element("tbody", {}, rows.map(([name, each]) => element("tr", {}, element("td", {}, name), cell(each.ece, 4), cell(each.brier, 4), cell(each.nll, 4), element("td", {class: "number"}, percent(each.confidence))))));
  const parts = [element("div", {class: "scroll"}, table)];
  if (trust.sets && trust.sets.length) {
    parts.push(element("h3", {style: {marginTop: "16px"}}, "Sets of classes"), element("div", {class: "scroll"}, element("table", {},
      element("thead", {}, element("tr", {}, ["", "asked", "found", "99 % of calibrations", "classes"].map((name, i) => element("th", {class: i ? "number" : ""}, name)))),
      element("tbody", {}, trust.sets.map(each => element("tr", {}, element("td", {}, each.method.toUpperCase()), element("td", {class: "number"}, percent(each.coverage)),
        element("td", {class: each.found >= each.low ? "number" : "number outside"}, percent(each.found)), element("td", {class: "number quiet"}, `${percent(each.low)} \u2013 ${percent(each.high)}`), cell(each.size, 2)))))));
  }
  const notes = [`top-1 ${percent(trust.top1.value)}, 95 % interval ${percent(trust.top1.low)} \u2013 ${percent(trust.top1.high)}, ${whole(trust.rows)} images`, trust.calibration].filter(Boolean);
  return element("div", {class: "panel"}, element("h3", {}, "Calibration"), parts, notes.map(note => element("p", {class: "quiet"}, note)));
}

function shownGallery(title, note, rows, caption) {
  const all = element("div", {class: "gallery"}, rows.map(each => element("figure", {title: each.path || each.name || ""},
    isPicture(each.picture) ? element("img", {src: each.picture, alt: each.name || "", loading: "lazy"}) : element("div", {class: "blank"}),
    element("figcaption", {}, caption(each), each.name ? element("div", {class: "name"}, shortName(each.name, each.given)) : null))));
  return element("div", {class: "panel below", style: {marginTop: "16px"}},
    element("div", {class: "head"}, element("h3", {}, title), element("span", {class: "legend"}, note)), all);
}

function groupTable(trust) {
  const body = element("tbody", {}, trust.groups.map(each => element("tr", {}, element("td", {}, each.value), element("td", {class: "number"}, whole(each.samples)),
    element("td", {}, percent(each.top1), bar(each.top1, "blue")), element("td", {class: "number quiet"}, `${percent(each.low)} \u2013 ${percent(each.high)}`))));
  const head = [trust.by, "images", "top-1", "95 % interval"].map((name, i) => element("th", {class: i % 2 ? "number" : ""}, name));
  return element("div", {class: "panel below", style: {marginTop: "16px"}}, element("h3", {}, `By ${trust.by}, weakest first`),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, head)), body)));
}

function drawTrust() {
  const trust = evaluation && evaluation.trust;
  if (!trust || !trust.raw) return;
  const share = value => `${Math.round(100 * value)} %`;
  const curves = [{name: "as the network says", tone: "orange", points: binsOf(trust.raw), dots: true}];
  if (trust.calibrated) curves.push({name: "calibrated", tone: "blue", points: binsOf(trust.calibrated), dots: true});
  section("How far to trust it", element("div", {class: "grid"},
    lineChart({title: "Reliability: right answers by confidence", xName: "confidence", format: percent, axis: share, fromZero: true, top: 1, series: [diagonal, ...curves]}),
    lineChart({title: "Wrong answers by share that is answered", xName: "answered", format: percent, axis: percent, fromZero: true,
      top: Math.max(0.01, ...trust.risk_coverage.points.map(point => point[1])),
      series: [{name: "wrong", tone: "red", points: trust.risk_coverage.points.map(point => [point[0], point[1]])}]})));
  page.append(element("div", {style: {marginTop: "16px"}}, trustTable(trust)));
  if (trust.labels && trust.labels.shown.length) {
    page.append(shownGallery("Labels that may be wrong", `${trust.labels.found} found by confident learning, most likely first`, trust.labels.shown,
      each => [element("span", {}, "label ", element("b", {}, each.given)), element("br"), "looks like ", element("span", {class: "wrong"}, each.suggested)]));
  }
  if (trust.leakage && trust.leakage.shown.length) {
    page.append(shownGallery("Among the training images too", `${trust.leakage.exact} the same file, ${trust.leakage.near} nearly the same picture; top-1 ${percent(trust.leakage.top1)}` +
      (isNumber(trust.leakage.top1_without) ? `, without them ${percent(trust.leakage.top1_without)}` : ""), trust.leakage.shown,
      each => ["as ", element("b", {}, shortName(each.training, "")), each.same_file ? "" : `, ${each.bits} of 64 bits differ`]));
  }
  if (trust.groups && trust.groups.length) page.append(groupTable(trust));
}

// ---------------------------------------------------------------- plan, history, environment
function drawPromise() {
  const panel = promisePanel(data.promise);
  if (panel) section("Promise against fact", panel);
}

function drawOrigin() {
  const environment = facts([["host", start.host], ["processor", start.cpu], ["device", start.device], ["precision", start.precision],
    ["ranks x threads", isNumber(start.ranks) ? `${start.ranks} x ${start.threads || "?"}` : ""], ["lockstep", start.version || data.version],
    ["libtorch", start.libtorch], ["weights SHA-256", end.weights_sha256], ["job SHA-256", start.job_sha256], ["data SHA-256", start.data_sha256]]);
  const cells = element("div", {class: "grid"}, element("div", {class: "panel"}, element("h3", {style: {marginBottom: "10px"}}, "Environment"), environment));
  if (data.sessions.length) cells.append(historyTable(data.sessions, data.status));
  section("How it was made", cells);
  if (data.bad_samples.length) {
    const rows = data.bad_samples.map(each => element("tr", {}, element("td", {}, each.path || ""), element("td", {}, each.reason || "")));
    page.append(element("details", {class: "panel", style: {marginTop: "16px"}}, element("summary", {}, `Images that could not be read (${rows.length})`),
      element("table", {}, element("tbody", {}, rows))));
  }
  if (data.job) {
    page.append(element("details", {class: "panel", style: {marginTop: "16px"}}, element("summary", {}, "The job document"),
      element("pre", {}, JSON.stringify(data.job, null, 2))));
  }
  page.append(element("footer", {}, `Made by lockstep ${data.version} on ${moment(data.made)}. This file is complete in itself.`));
}

for (const draw of [drawHead, drawCards, drawRow, drawCurves, drawTime, drawScoreCurves, drawMistakes, drawTrust, drawPromise, drawOrigin]) draw();
document.documentElement.dataset.drawn = "yes";
