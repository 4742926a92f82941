// SPDX-License-Identifier: Apache-2.0
// Lays out the report of a study from the data in this file.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This report could not be drawn completely: ${event.message}`));
});

const isNumber = value => typeof value === "number" && Number.isFinite(value);
const whole = value => Math.round(value).toLocaleString("en-US");
const hours = value => value >= 100 ? whole(value) : value < 0.01 && value > 0 ? value.toExponential(1) : value.toFixed(2);
const better = (a, b) => data.maximize ? a > b : a < b;
const done = data.trials.filter(trial => trial.state === "complete" && isNumber(trial.value));
const best = data.trials.find(trial => trial.number === data.best);
const valueText = value => isNumber(value) ? String(Number(value.toPrecision(5))) : String(value);
const shortName = name => name.split(".").slice(-2).join(".");

function section(title, ...content) {
  page.append(element("h2", {}, title), ...content);
}

function drawHead() {
  const running = data.counts.running + data.counts.paused > 0;
  page.append(element("div", {class: "top"}, element("h1", {}, data.name),
    element("span", {class: "pill", tone: running ? "blue" : "green"}, running ? "running" : "ended")));
  page.append(element("p", {class: "lead"}, [`sampler ${data.sampler}`, `scheduler ${data.scheduler}`,
    `${data.maximize ? "largest" : "smallest"} ${data.objective}`, `${data.parameters.length} parameters`,
    ...data.before.trials ? [`drawn: the best and those from trial ${whole(data.before.trials)} on`] : []].join(" \u00b7 ")));
  const cards = element("div", {class: "cards"});
  const add = (label, value, note) => cards.append(element("div", {class: cards.children.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: "value"}, value), element("div", {class: "note"}, note || "")));
  add("Best", best ? valueText(best.value) : "-", best ? `trial ${best.number}` : "no trial is complete");
  add("Complete", whole(data.counts.complete), `of ${whole(data.wanted)} wanted`);
  if (data.counts.paused) add("Paused", whole(data.counts.paused), "go on once among the best of their rung");
  add("Pruned", whole(data.counts.pruned), "stopped early");
  add("Could not fit", whole(data.counts.infeasible), "never started");
  add("Failed", whole(data.counts.failed), "");
  add("Node-hours", hours(data.node_hours), data.budget_node_hours ? `of ${hours(data.budget_node_hours)}` :
    data.price ? `${(data.node_hours * data.price).toFixed(2)} at ${data.price} each` : "");
  add("The next trial", isNumber(data.next_node_hours) ? hours(data.next_node_hours) : "-", "node-hours, about");
  page.append(cards);
}

// Best so far over what was spent, in the order of the trials.
function drawProgress() {
  let spent = data.before.node_hours, top = data.before.best;
  const line = top === null ? [] : [[spent, top]], dots = [];
  for (const trial of data.trials) {
    if (trial.number < data.before.trials) continue;  // the best
    spent += trial.node_hours;
    if (trial.state !== "complete" || !isNumber(trial.value)) continue;
    if (top === null || better(trial.value, top)) top = trial.value;
    line.push([spent, top]);
    dots.push([spent, trial.value]);
  }
  return lineChart({title: "Best so far", xName: "node-hours", format: valueText,
    series: [{name: "each trial", tone: "grey", points: dots, faint: true}, {name: "best", tone: "blue", points: line}]});
}

function drawImportance() {
  const panel = element("div", {class: "panel"}, element("div", {class: "head"}, element("h3", {}, "Importance")));
  if (!data.importance.length) panel.append(element("p", {class: "quiet"}, "Ten complete trials are needed."));
  for (const row of data.importance) {
    panel.append(element("div", {class: "bar-row"}, element("span", {title: row.name}, shortName(row.name)),
      element("div", {class: "bar"}, element("i", {style: {width: `${(100 * row.share).toFixed(1)}%`}})),
      element("b", {}, `${(100 * row.share).toFixed(0)} %`)));
  }
  if (data.importance.length) panel.append(element("p", {class: "quiet"}, "How far the values of the best tenth differ from those of all (PED-ANOVA)."));
  return panel;
}

const tones = ["blue", "green", "orange", "violet", "cyan", "red"];

function drawCurves() {
  const early = trial => trial.state === "pruned" || trial.state === "paused";
  const curves = data.trials.filter(trial => trial.curve.length > 1 || (trial.curve.length && early(trial)));
  if (!curves.length) return null;
  const ranked = [...curves].filter(trial => isNumber(trial.value)).sort((a, b) => better(a.value, b.value) ? -1 : 1).slice(0, 5);
  const series = curves.filter(trial => !ranked.includes(trial)).slice(-200).map(trial => ({
    name: `trial ${trial.number}`, tone: early(trial) ? "orange" : "grey", dash: early(trial) ? "3 2" : "", points: trial.curve, faint: true}));
  ranked.forEach((trial, i) => series.push({name: `trial ${trial.number}`, tone: tones[i], points: trial.curve}));
  return lineChart({title: "Learning curves: the best five; pruned and paused ones dashed", xName: "epoch", format: valueText, series});
}

// One line a trial through its value on every axis; the last axis is the objective.
function drawParallel(width) {
  const names = [...data.parameters.map(p => shortName(p.name)), data.objective];
  const height = 300, top = 44, bottom = 26, left = 46, right = 46;
  const x = i => left + i * (width - left - right) / Math.max(1, names.length - 1);
  const values = done.map(trial => trial.value), low = Math.min(...values), high = Math.max(...values);
  const rank = value => high > low ? (value - low) / (high - low) : .5;
  const y = unit => height - bottom - unit * (height - top - bottom);
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "parallel coordinates"});
  const ordered = [...done].sort((a, b) => better(a.value, b.value) ? 1 : -1).slice(-400);
  ordered.forEach((trial, i) => {
    const points = trial.units.map((unit, k) => isNumber(unit) ? [x(k), y(unit)] : null).filter(Boolean);
    points.push([x(names.length - 1), y(rank(trial.value))]);
    const good = i / Math.max(1, ordered.length - 1);
    const isBest = best && trial.number === best.number;
    const path = shape("path", {d: points.map((p, k) => `${k ? "L" : "M"}${p[0].toFixed(1)},${p[1].toFixed(1)}`).join(""), fill: "none",
      stroke: isBest ? "var(--orange)" : good > .9 ? "var(--blue)" : "var(--grey)", "stroke-width": isBest ? 2.6 : 1.2,
      "stroke-opacity": isBest ? 1 : (.12 + .6 * good * good).toFixed(2)});
    path.addEventListener("pointermove", event => showTip(event, tipRow(null, `trial ${trial.number}`, valueText(trial.value)),
      ...data.parameters.map((p, k) => tipRow(null, shortName(p.name), valueText(trial.values[k])))));
    path.addEventListener("pointerleave", hideTip);
    svg.append(path);
  });
  names.forEach((name, i) => {
    const parameter = data.parameters[i];
    const ends = !parameter ? [low, high].map(valueText) : parameter.choices ? [parameter.choices[0], parameter.choices[parameter.choices.length - 1]].map(String) : [compact(parameter.low), compact(parameter.high)];
    svg.append(shape("line", {class: "grid-line", x1: x(i), x2: x(i), y1: y(0), y2: y(1)}));
    const stagger = names.length > 5 && i % 2 ? 14 : 28;
    const anchor = i === 0 ? "start" : i === names.length - 1 ? "end" : "middle";
    const at = i === 0 ? 0 : i === names.length - 1 ? width : x(i);
    svg.append(shape("text", {x: at, y: names.length > 5 ? stagger : 16, "text-anchor": anchor, style: "font-weight: 600"}, name + (parameter && parameter.log ? " (log)" : "")));
    const room = Math.max(6, Math.floor(width / names.length / 8));  // letters between two axes
    const brief = word => word.length > room ? `${word.slice(0, room - 1)}\u2026` : word;
    svg.append(shape("text", {x: x(i), y: top - 4, "text-anchor": "middle"}, brief(ends[1])));
    svg.append(shape("text", {x: x(i), y: height - 8, "text-anchor": "middle"}, brief(ends[0])));
  });
  return svg;
}

function parallelPanel() {
  const panel = element("div", {class: "panel"}, element("div", {class: "head"}, element("h3", {}, "Every complete trial: blue the best tenth, orange the best")));
  const host = element("div", {class: "chart"});
  panel.append(host);
  if (done.length) queueMicrotask(() => responsive(host, drawParallel));
  else host.append(element("p", {class: "quiet"}, "No trial is complete."));
  return panel;
}

function drawTable() {
  const rows = [...data.trials].sort((a, b) => isNumber(a.value) && isNumber(b.value) ? (better(a.value, b.value) ? -1 : 1) : isNumber(a.value) ? -1 : isNumber(b.value) ? 1 : a.number - b.number).slice(0, 30);
  const table = element("table", {}, element("thead", {}, element("tr", {}, ["trial", "state", data.objective, "node-hours", ...data.parameters.map(p => shortName(p.name)), ""].map(name => element("th", {}, name)))));
  const body = element("tbody", {});
  for (const trial of rows) {
    body.append(element("tr", {}, [String(trial.number), trial.state, isNumber(trial.value) ? valueText(trial.value) : "", hours(trial.node_hours),
      ...trial.values.map(value => value === null ? "" : valueText(value)), trial.error].map(cell => element("td", {}, cell))));
  }
  table.append(body);
  return element("div", {class: "panel"}, element("div", {class: "scroll"}, table));
}

drawHead();
section("What was found", element("div", {class: "grid wide-left"}, drawProgress(), drawImportance()));
section("Parallel coordinates", parallelPanel());
const curves = drawCurves();
if (curves) section("Learning curves", curves);
section("The best trials", drawTable());
