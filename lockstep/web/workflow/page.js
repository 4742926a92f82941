// SPDX-License-Identifier: Apache-2.0
// Lays out a workflow from the data in this file: its timeline, the share of each stage, the Amdahl sum.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This page could not be drawn completely: ${event.message}`));
});

const tones = ["blue", "orange", "green", "violet", "cyan", "red"];
const stages = data.timeline.stages;
const toneOf = index => tones[index % tones.length];
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

function time(seconds) {
  if (seconds >= 172800) return `${Math.floor(seconds / 86400)} d ${Math.round(seconds % 86400 / 3600)} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h${seconds % 3600 >= 60 ? ` ${String(Math.floor(seconds % 3600 / 60)).padStart(2, "0")} min` : ""}`;
  if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Number(seconds.toPrecision(3))} s`;
}

function drawHead() {
  const done = data.stages.filter(stage => stage.state === "done").length;
  const measured = stages.filter(stage => stage.measured).length;
  const tone = done === data.stages.length ? "green" : "orange";
  page.append(element("div", {class: "top"}, element("h1", {}, data.name),
    element("span", {class: "pill", tone}, done === data.stages.length ? "up to date" : `${done} of ${data.stages.length} stages done`)),
  element("p", {class: "lead"}, `${data.stages.length} stages \u00b7 ${measured ? `${measured} measured` : "times as expected, nothing has run"}`));
  const cards = element("div", {class: "cards"});
  const add = (label, value, note) => cards.append(element("div", {class: cards.children.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: "value"}, value), element("div", {class: "note"}, note)));
  add("The whole", time(data.timeline.whole_seconds), data.timeline.unknown.length ? `without ${data.timeline.unknown.join(", ")}` : "from first start to last end");
  const longest = [...stages].sort((a, b) => b.seconds - a.seconds)[0];
  if (longest && longest.seconds > 0) add("Longest stage", longest.name, `${time(longest.seconds)}, ${percent(longest.share)} of it`);
  const last = data.amdahl.spreads[data.amdahl.spreads.length - 1];
  if (last) add(`${data.amdahl.stage} on ${last.gpus} GPUs`, percent(last.left), `of the whole is left: ${time(last.seconds)}`);
  if (data.amdahl.next) add("Speed up next", data.amdahl.next, `${percent(1 - data.amdahl.next_left)} of what is left then`);
  page.append(cards);
}

function stageTip(event, stage, index) {
  showTip(event, element("b", {}, stage.name), tipRow(toneOf(index), stage.measured ? "measured" : "expected", time(stage.seconds)),
    tipRow(null, "share", percent(stage.share)), tipRow(null, "starts at", time(stage.start)), tipRow(null, "the whole waits for it", stage.critical ? "yes" : "no"));
}

// One bar a stage; hatched: expected, not measured.
function drawGantt(width) {
  const whole = Math.max(data.timeline.whole_seconds, 1e-9), row = 34, top = 6;
  const names = Math.min(width * 0.3, 24 + Math.max(...stages.map(stage => textWidth(stage.name, 13))));
  const right = 92, height = top + stages.length * row + 26;
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "timeline of the stages"});
  const x = seconds => names + seconds / whole * (width - names - right);
  const unit = whole > 7200 ? 3600 : whole > 120 ? 60 : 1;
  for (const tick of niceTicks(0, whole / unit, width < 500 ? 4 : 8)) {
    if (tick * unit > whole * 1.0001) continue;
    const at = x(tick * unit);
    svg.append(shape("line", {x1: at, x2: at, y1: top, y2: height - 22, class: "grid-line"}));
    svg.append(shape("text", {x: at, y: height - 6, "text-anchor": "middle"}, `${tick} ${unit === 3600 ? "h" : unit === 60 ? "min" : "s"}`));
  }
  const patterns = shape("defs");
  svg.append(patterns);
  stages.forEach((stage, index) => {
    const y = top + index * row, colour = `var(--${toneOf(index)})`;
    const pattern = shape("pattern", {id: `hatch${index}`, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)"});
    pattern.append(shape("rect", {width: 7, height: 7, fill: colour, "fill-opacity": .35}), shape("rect", {width: 3, height: 7, fill: colour}));
    patterns.append(pattern);
    svg.append(shape("text", {x: 0, y: y + 20, style: `font-size: 13px; fill: var(--ink); ${stage.critical ? "font-weight: 600" : ""}`}, stage.name));
    if (stage.seconds <= 0) {
      svg.append(shape("text", {x: x(stage.start), y: y + 20}, "time not known"));
      return;
    }
    const bar = shape("rect", {x: x(stage.start), y: y + 6, width: Math.max(2, x(stage.start + stage.seconds) - x(stage.start)), height: row - 13, rx: 4,
      fill: stage.measured ? colour : `url(#hatch${index})`, class: "cell", tabindex: 0, "aria-label": `${stage.name}: ${time(stage.seconds)}, ${percent(stage.share)}`});
    bar.addEventListener("pointermove", event => stageTip(event, stage, index));
    bar.addEventListener("pointerleave", hideTip);
    svg.append(bar);
    svg.append(shape("text", {x: Math.min(x(stage.start + stage.seconds) + 7, width - right + 7), y: y + 20}, time(stage.seconds)));
  });
  return svg;
}

function drawTimeline() {
  const host = element("div", {class: "chart"});
  queueMicrotask(() => responsive(host, drawGantt));
  const hatched = stages.some(stage => !stage.measured && stage.seconds > 0);
  return element("div", {class: "panel"}, element("div", {class: "head"}, element("h3", {}, "When each stage runs"),
    element("span", {class: "legend"}, hatched ? "hatched: expected, not measured \u00b7 bold: the whole waits for it" : "bold: the whole waits for it")), host);
}

function drawShares() {
  const known = stages.map((stage, index) => ({...stage, index})).filter(stage => stage.seconds > 0);
  const bar = element("div", {class: "split"}, known.map(stage =>
    element("div", {tone: toneOf(stage.index), style: {flexGrow: stage.share, flexBasis: "0"}, title: `${stage.name}: ${percent(stage.share)}`})));
  const legend = element("div", {class: "legend"}, known.map(stage =>
    element("span", {}, element("i", {tone: toneOf(stage.index)}), `${stage.name} `, element("b", {}, percent(stage.share)), ` ${time(stage.seconds)}`)));
  return element("div", {class: "panel below"}, element("div", {class: "head"}, element("h3", {}, "Share of the whole")), bar, legend);
}

function row(kind, cells, numbersFrom) {
  return element("tr", {}, cells.map((cell, i) => element(kind, i >= numbersFrom ? {class: "number"} : {}, cell)));
}

function drawAmdahl() {
  const amdahl = data.amdahl, panels = [];
  if (amdahl.spreads.length) {
    const heads = ["GPUs", `${amdahl.stage} goes`, "the whole takes", "left of it", `if the time were of 1 GPU, not ${amdahl.gpus}`,
      `with the share as ${percent(amdahl.part, 0)}`, "likewise, of 1 GPU"];
    const table = element("table", {}, element("thead", {}, row("th", heads, 0)), element("tbody", {}, amdahl.spreads.map(one =>
      row("td", [`${one.gpus}${one.extrapolated ? " (not measured)" : ""}`, `${one.speedup.toFixed(2)}x`, time(one.seconds), percent(one.left, 2),
        percent(one.as_if_one_gpu, 2), percent(one.rounded, 2), percent(one.rounded_as_if_one_gpu, 2)], 1))));
    panels.push(element("div", {class: "panel"}, element("div", {class: "head"}, element("h3", {}, `${amdahl.stage} spread over more or fewer GPUs`),
      element("span", {class: "legend"}, `its time is of ${amdahl.gpus} GPU${amdahl.gpus === 1 ? "" : "s"}${amdahl.ideal ? "; no throughput is stated: without loss" : ""}`)),
    element("div", {class: "scroll"}, table)));
  }
  const most = Math.max(...amdahl.freed.map(one => 1 - one.left), 1e-9);
  panels.push(element("div", {class: "panel below"}, element("div", {class: "head"}, element("h3", {}, "What each stage can bring at most"),
    element("span", {class: "legend"}, "left of the whole if it took no time")),
  element("ul", {class: "pairs"}, amdahl.freed.filter(one => one.left < 1).map(one => element("li", {},
    element("div", {class: "row"}, element("span", {}, one.stage), element("span", {}, one.left > 0 ? `${percent(one.left)} \u00b7 ${one.speedup.toFixed(2)}x` : "nothing")),
    element("div", {class: "bar", tone: "blue"}, element("div", {style: {width: `${100 * (1 - one.left) / most}%`}})))))));
  return panels;
}

function drawStages() {
  const body = element("tbody", {});
  data.stages.forEach(stage => {
    body.append(element("tr", {class: "told"}, [stage.name, stage.kind, stage.state, stage.inputs.join(", ") || "\u2013", stage.outputs.join(", ") || "\u2013"]
      .map(cell => element("td", {}, cell))));
    body.append(element("tr", {}, element("td", {class: "words", colspan: 5}, element("code", {}, stage.command), stage.why ? ` \u2014 ${stage.why}` : "")));
  });
  return element("div", {class: "panel"}, element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, row("th", ["stage", "kind", "state", "reads", "writes"], 9)), body)));
}

drawHead();
page.append(element("h2", {}, "Timeline"), drawTimeline(), drawShares());
if (data.timeline.whole_seconds > 0) page.append(element("h2", {}, "The Amdahl sum"), ...drawAmdahl());
page.append(element("h2", {}, "Stages"), drawStages());
