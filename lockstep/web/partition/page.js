// SPDX-License-Identifier: Apache-2.0
// Lays out a partitioned parameter space from the data in this file.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This page could not be drawn completely: ${event.message}`));
});

const percent = share => share >= 0.0995 ? `${(100 * share).toFixed(1)} %` : `${Number((100 * share).toPrecision(2))} %`;
const names = data.parameters.map(parameter => parameter.name);
const tones = ["blue", "orange", "green", "violet", "cyan", "red", "grey"];
// A shape beside the colour, for whoever cannot tell the colours: disc, square, triangle, diamond, plus, cross, bar.
const marks = ["M-1.8,0a1.8,1.8 0 1 0 3.6,0a1.8,1.8 0 1 0 -3.6,0Z", "M-1.6,-1.6h3.2v3.2h-3.2Z", "M0,-2.3L2.2,1.6H-2.2Z",
  "M0,-2.5L2.5,0L0,2.5L-2.5,0Z", "M-.7,-2.2h1.4v1.5h1.5v1.4h-1.5v1.5h-1.4v-1.5h-1.5v-1.4h1.5Z",
  "M-2,-1.2L-1.2,-2L0,-.8L1.2,-2L2,-1.2L.8,0L2,1.2L1.2,2L0,.8L-1.2,2L-2,1.2L-.8,0Z", "M-2.4,-.8h4.8v1.6h-4.8Z"];
const rankOf = label => {
  const at = data.regions.findIndex(region => region.label === label);
  return at < 0 ? tones.length - 1 : Math.min(tones.length - 1, at);
};
const markOf = label => ({d: marks[rankOf(label)], fill: `var(--${tones[rankOf(label)]})`});
function bigMark(label) {
  const svg = shape("svg", {width: 14, height: 14, viewBox: "-2.8 -2.8 5.6 5.6", style: "display: inline-block; vertical-align: -2px; margin-right: 6px"});
  svg.append(shape("path", markOf(label)));
  return svg;
}
const valueText = value => typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);

function drawHead() {
  page.append(element("div", {class: "top"}, element("h1", {}, data.name)),
    element("p", {class: "lead"}, `${data.regions.length} regions \u00b7 ${names.length} parameters \u00b7 ${data.evaluations.toLocaleString("en-US")} evaluations`));
  const cards = element("div", {class: "cards"});
  const add = (label, value, note) => cards.append(element("div", {class: cards.children.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: "value"}, value), element("div", {class: "note"}, note)));
  for (const region of data.regions.slice(0, 4)) add(region.label, percent(region.volume), `${percent(region.low)} to ${percent(region.high)}`);
  add("Found with 95 %", percent(data.found_volume_95), "any region of this size or more");
  if (data.failures) add("No label", String(data.failures), "points that count to no region");
  page.append(cards);
}

function drawTable() {
  const heads = ["", "region", "volume", `interval, ${percent(data.confidence)} together`, ...names.map(name => `${name}: centre`), "published estimator"];
  const table = element("table", {}, element("thead", {}, element("tr", {}, heads.map(name => element("th", {}, name)))));
  const body = element("tbody", {});
  for (const region of data.regions) {
    body.append(element("tr", {}, element("td", {}, bigMark(region.label)), [region.label, percent(region.volume), `${percent(region.low)} to ${percent(region.high)}`,
      ...region.centre.map(valueText), percent(region.published)].map(cell => element("td", {}, cell))));
  }
  table.append(body);
  return element("div", {class: "panel"}, element("div", {class: "scroll"}, table));
}

function drawMissed() {
  const table = element("table", {}, element("thead", {}, element("tr", {}, ["a region of this volume", "was missed with probability"].map(name => element("th", {}, name)))));
  const body = element("tbody", {});
  for (const row of data.missed) body.append(element("tr", {}, element("td", {}, percent(row.volume)), element("td", {}, percent(row.probability))));
  table.append(body);
  return element("div", {class: "panel"}, element("div", {class: "scroll"}, table));
}

// Each pair of parameters: uniform points in the colour and shape of their region.
function drawPair(i, j, width) {
  const size = width, margin = 34;
  const svg = shape("svg", {width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `${names[i]} and ${names[j]}`});
  const x = unit => margin + unit * (size - margin - 6), y = unit => size - margin - unit * (size - margin - 6);
  svg.append(shape("rect", {x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1), fill: "var(--faint)", rx: 4}));
  for (const point of data.points) {
    svg.append(shape("path", {class: "point", ...markOf(point[names.length]), transform: `translate(${x(point[i]).toFixed(1)} ${y(point[j]).toFixed(1)})`, "fill-opacity": .8}));
  }
  const end = (parameter, which) => parameter.choices ? String(parameter.choices[which ? parameter.choices.length - 1 : 0]) : compact(which ? parameter.high : parameter.low);
  svg.append(shape("text", {x: x(0), y: size - 18, "text-anchor": "start"}, end(data.parameters[i], 0)));
  svg.append(shape("text", {x: x(1), y: size - 18, "text-anchor": "end"}, end(data.parameters[i], 1)));
  svg.append(shape("text", {x: x(.5), y: size - 4, "text-anchor": "middle", style: "font-weight: 600"}, names[i]));
  svg.append(shape("text", {x: 12, y: y(.5), "text-anchor": "middle", style: "font-weight: 600", transform: `rotate(-90 12 ${y(.5)})`}, names[j]));
  svg.append(shape("text", {x: 28, y: y(0), "text-anchor": "middle", transform: `rotate(-90 28 ${y(0)})`, dx: 12}, end(data.parameters[j], 0)));
  svg.append(shape("text", {x: 28, y: y(1), "text-anchor": "middle", transform: `rotate(-90 28 ${y(1)})`, dx: -12}, end(data.parameters[j], 1)));
  return svg;
}

function drawPairs() {
  const legend = element("div", {class: "legend"}, data.regions.slice(0, 7).map((region, i) =>
    element("span", {}, bigMark(region.label), i === 6 && data.regions.length > 7 ? "others" : region.label)));
  const pairs = element("div", {class: "pairs"});
  let drawn = 0;
  for (let i = 0; i < names.length; i++) {
    for (let j = i + 1; j < names.length && drawn < 28; j++, drawn++) {
      const host = element("div", {class: "panel"});
      const inner = element("div", {class: "chart"});
      host.append(inner);
      pairs.append(host);
      queueMicrotask(() => responsive(inner, width => drawPair(i, j, width)));
    }
  }
  return [element("div", {class: "panel"}, legend), pairs];
}

drawHead();
page.append(element("h2", {}, "Regions"), drawTable());
page.append(element("h2", {}, "Pairs of parameters"), ...drawPairs());
page.append(element("h2", {}, "What may have been missed"), drawMissed());
