// SPDX-License-Identifier: Apache-2.0
// Lays out several runs beside each other, from the data in this file.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This report could not be drawn completely: ${event.message}`));
});

// Tone and dash tell the curves apart, so that nobody needs to see every colour.
const tones = ["blue", "orange", "green", "violet", "cyan", "red", "grey"];
const dashes = [null, "7 4", "2 3"];
const runs = data.runs.map((run, i) => ({...run, tone: tones[i % tones.length], dash: dashes[i % dashes.length], start: run.start || {}}));
// The last part of the folder's name, where that tells them apart.
const shortName = run => run.folder.replace(/\/+$/, "").split("/").pop();
const isShort = new Set(runs.map(shortName)).size === runs.length;
const nameOf = run => isShort ? shortName(run) : run.folder;
const wordsOf = run => run.start.report || {title: "Accuracy", share: true, training: "accuracy", validation: "top1"};
const isByEpoch = runs.every(run => run.steps.every(each => isNumber(each.epoch)));
const xName = isByEpoch ? "epoch" : "step";
const xOf = each => isByEpoch ? each.epoch : each.step;
const pointsOf = (rows, key) => rows.filter(each => isNumber(each[key]) && isNumber(xOf(each))).map(each => [xOf(each), each[key]]);

function section(title, ...content) {
  page.append(element("h2", {}, title), ...content);
}

function curves(rowsOf, keyOf, dots) {
  return runs.map(run => {
    const points = pointsOf(rowsOf(run), keyOf(run));
    return {name: nameOf(run), tone: run.tone, dash: run.dash, dots, points: points.length < 60 ? points : smooth(points)};
  });
}

function drawHead() {
  page.append(element("h1", {}, `${runs.length} runs`));
  page.append(element("div", {class: "runs"}, runs.map(run => element("div", {class: "top"},
    element("span", {class: "legend"}, element("i", {tone: run.tone, class: run.dash ? "dashed" : ""})), element("b", {}, run.folder), statusPill(run.status),
    element("span", {class: "quiet"}, [run.start.model, [run.start.device, run.start.precision].filter(Boolean).join(", "),
      isNumber(run.start.ranks) ? `${run.start.ranks} rank${run.start.ranks === 1 ? "" : "s"}` : null].filter(Boolean).join(" \u00b7 "))))));
}

function drawCurves() {
  const words = wordsOf(runs[0]);
  const alike = runs.every(run => wordsOf(run).validation === words.validation);
  const figure = value => alike && words.share ? percent(value) : compact(value);
  section("Learning", element("div", {class: "grid"},
    lineChart({title: "Training loss", xName, format: value => value.toFixed(3), fromZero: true, series: curves(run => run.steps, () => "loss")}),
    lineChart({title: "Validation loss", xName, format: value => value.toFixed(3), fromZero: true, empty: "No evaluation yet.", series: curves(run => run.evaluations, () => "loss", true)}),
    lineChart({title: `${alike ? words.title : "Score"}, validation`, xName, format: figure, fromZero: true, empty: "No evaluation yet.",
      ...(alike && words.share ? {axis: value => `${Math.round(100 * value)} %`, top: 1} : {}), series: curves(run => run.evaluations, run => wordsOf(run).validation, true)}),
    lineChart({title: "Throughput, images per second", xName, format: value => compact(value), fromZero: true, series: curves(run => run.steps, () => "samples_per_second")})));
}

const cellText = (name, value) => value === null || value === undefined ? "\u2013" : typeof value === "string" ? (name.endsWith("sha256") ? value.slice(0, 12) : value)
  : isNumber(value) && !Number.isInteger(value) ? String(Number(value.toPrecision(5))) : JSON.stringify(value);

function differenceTable(title, rows) {
  if (!rows.length) return element("div", {class: "panel below"}, element("h3", {}, title), element("p", {class: "quiet"}, "The same in all of them."));
  return element("div", {class: "panel below"}, element("h3", {}, title),
    table(["", ...runs.map(nameOf)], rows.map(row => [row.name, ...row.values.map(value => cellText(row.name, value))]), runs.map((_, i) => i + 1)));
}

function drawTables() {
  const all = data.differences;
  section("What differs", differenceTable("Settings", all.settings), differenceTable("Circumstances", all.circumstances));
  section("What came of it", differenceTable("Figures", all.figures));
}

function drawTime() {
  const names = Object.keys(runs[0].time);
  const totals = runs.map(run => Object.values(run.time).reduce((a, b) => a + b, 0));
  if (!totals.some(total => total > 0)) return;
  const rows = names.filter(name => runs.some(run => run.time[name] > 0)).map(name => [name, ...runs.map((run, i) => totals[i] ? percent(run.time[name] / totals[i]) : "\u2013")]);
  rows.push(["all", ...totals.map(total => duration(total))]);
  const slow = element("dl", {});
  for (const run of runs) {
    const first = run.slowness && run.slowness.findings[0];
    if (first) slow.append(element("dt", {}, nameOf(run)), element("dd", {}, first.what, first.advice ? element("div", {class: "advice"}, first.advice) : null));
  }
  section("Where the time went", element("div", {class: "panel"}, table(["", ...runs.map(nameOf)], rows, runs.map((_, i) => i + 1))),
    slow.children.length ? element("div", {class: "panel below slow-runs"}, element("h3", {}, "Why is it not faster?"), slow) : null);
}

function drawPromises() {
  const planned = runs.filter(run => run.promise && run.promise.rows && run.promise.rows.length);
  if (!planned.length) return;
  const names = [...new Set(planned.flatMap(run => run.promise.rows.map(row => row.what)))];
  const rows = names.map(name => [name, ...planned.map(run => {
    const row = run.promise.rows.find(each => each.what === name);
    if (!row) return "\u2013";
    const words = `${quantity(row.measured, row.unit)} of ${quantity(row.promised, row.unit)}, ${row.deviation < 0 ? "\u2212" : "+"}${Math.abs(100 * row.deviation).toFixed(1)} %`;
    return row.inside ? words : element("span", {class: "outside"}, `${words}, outside`);
  })]);
  section("Fact against promise", element("div", {class: "panel"}, table(["", ...planned.map(nameOf)], rows, planned.map((_, i) => i + 1))));
}

for (const draw of [drawHead, drawCurves, drawTables, drawTime, drawPromises]) draw();
page.append(element("footer", {}, `Made by lockstep ${data.version} on ${moment(data.made)}. This file is complete in itself.`));
document.documentElement.dataset.drawn = "yes";
