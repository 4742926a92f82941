// SPDX-License-Identifier: Apache-2.0
// The plan's own charts: memory over the step stacked by class, machines compared.
"use strict";

const memoryTones = {
  weights: "blue", gradients: "violet", optimizer: "cyan", averages: "brown", activations: "orange", workspaces: "olive",
  buckets: "pink", inputs: "green", other: "grey",
};

const gigabytes = bytes => bytes >= 1e12 ? `${(bytes / 1e12).toFixed(2)}\u00a0TB`
  : bytes >= 1e9 ? `${(bytes / 1e9).toFixed(bytes >= 9.995e10 ? 0 : 1)}\u00a0GB` : `${(bytes / 1e6).toFixed(bytes >= 1e7 ? 0 : 1)}\u00a0MB`;

// curve: {event: [...], <class>: [...]}; capacity 0: not known.
function memoryChart(option) {
  const host = element("div", {class: "chart"});
  queueMicrotask(() => responsive(host, width => drawMemory(option, width)));
  return host;
}

function drawMemory(option, width) {
  const curve = option.memory.curve, n = curve.event.length;
  const classes = Object.keys(memoryTones).filter(name => curve[name]);
  const outside = option.memory.context_bytes + option.memory.nccl_bytes;
  const totals = curve.event.map((_, i) => classes.reduce((sum, name) => sum + curve[name][i], 0));
  const peak = totals.indexOf(Math.max(...totals));
  const capacity = option.memory.capacity_bytes;
  const near = capacity && capacity < 3 * (totals[peak] + outside);
  const height = 320, margin = {left: 62, right: 16, top: 24, bottom: 30};
  const ticks = niceTicks(0, Math.max(totals[peak] + outside, near ? capacity : 0) / 1e9, 5);
  const top = ticks[ticks.length - 1] * 1e9;
  const x = i => margin.left + i / Math.max(1, n - 1) * (width - margin.left - margin.right);
  const y = value => height - margin.bottom - value / top * (height - margin.top - margin.bottom);
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "memory over the step"});
  for (const tick of ticks) {
    svg.append(shape("line", {class: "grid-line", x1: margin.left, x2: width - margin.right, y1: y(tick * 1e9), y2: y(tick * 1e9)}));
    svg.append(shape("text", {x: margin.left - 8, y: y(tick * 1e9) + 4, "text-anchor": "end"}, `${compact(tick)} GB`));
  }
  let below = curve.event.map(() => 0);
  for (const name of classes) {
    const above = below.map((value, i) => value + curve[name][i]);
    const up = above.map((value, i) => `${i ? "L" : "M"}${x(i).toFixed(1)},${y(value).toFixed(1)}`).join("");
    const down = below.map((value, i) => `L${x(i).toFixed(1)},${y(value).toFixed(1)}`).reverse().join("");
    svg.append(shape("path", {class: "layer", d: `${up}${down}Z`, fill: `var(--${memoryTones[name]})`, "fill-opacity": .85}));
    below = above;
  }
  if (near) {
    svg.append(shape("line", {class: "limit", x1: margin.left, x2: width - margin.right, y1: y(capacity - outside), y2: y(capacity - outside)}));
    svg.append(shape("text", {x: width - margin.right, y: y(capacity - outside) - 6, "text-anchor": "end"},
      `the GPU: ${gigabytes(capacity)} less ${gigabytes(outside)} outside`));
  }
  svg.append(shape("circle", {class: "peak", cx: x(peak), cy: y(totals[peak]), r: 4, fill: "var(--ink)", stroke: "var(--surface)", "stroke-width": 1.5}));
  const side = x(peak) > width * .62 ? "end" : "start";
  svg.append(shape("text", {class: "mark", x: x(peak) + (side === "end" ? -9 : 9), y: Math.max(14, y(totals[peak]) - 7), "text-anchor": side},
    `peak ${gigabytes(totals[peak])}`));
  svg.append(shape("text", {x: margin.left, y: height - 9}, "the step begins"));
  svg.append(shape("text", {x: width - margin.right, y: height - 9, "text-anchor": "end"}, "and ends"));
  const cross = shape("line", {class: "cross", y1: margin.top, y2: height - margin.bottom, visibility: "hidden"});
  svg.append(cross);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) * width / box.width - margin.left) / (width - margin.left - margin.right);
    const i = Math.min(n - 1, Math.max(0, Math.round(share * (n - 1))));
    cross.setAttribute("x1", x(i));
    cross.setAttribute("x2", x(i));
    cross.setAttribute("visibility", "visible");
    showTip(event, tipRow(null, "all", gigabytes(totals[i])),
      ...classes.filter(name => curve[name][i]).reverse().map(name => tipRow(memoryTones[name], name, gigabytes(curve[name][i]))));
  });
  svg.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); hideTip(); });
  return svg;
}

// rows: [{name, changed, value, low, high, tone, text, tip: [[name, value]]}]; a row without a value shows its text only.
function barChart(rows, label) {
  const host = element("div", {class: "chart"});
  queueMicrotask(() => responsive(host, width => drawBars(rows, label, width)));
  return host;
}

function drawBars(rows, label, width) {
  const line = 25, names = Math.min(width * .4, 16 + 6.6 * Math.max(...rows.map(row => row.name.length)));
  const values = rows.filter(row => isNumber(row.value));
  const most = Math.max(...values.map(row => row.high || row.value), 1e-12);
  const room = width - names - (width < 600 ? 84 : 250);
  const x = value => names + value / most * room;
  const height = rows.length * line + 4;
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
  rows.forEach((row, i) => {
    const top = i * line + 4, middle = top + line / 2 - 2;
    const group = shape("g", {class: "machine"});
    group.append(shape("text", {class: row.changed ? "name changed" : "name", x: names - 10, y: middle + 4, "text-anchor": "end"}, row.name));
    let end = names;
    if (isNumber(row.value)) {
      group.append(shape("rect", {class: "amount", x: names, y: top + 2, width: Math.max(2, x(row.value) - names), height: line - 9, rx: 4,
        fill: `var(--${row.tone})`, "fill-opacity": row.faint ? .3 : .85}));
      end = x(row.value);
      if (isNumber(row.low)) {
        group.append(shape("path", {class: "whisker", fill: "none",
          d: `M${x(row.low)},${middle}H${x(row.high)}M${x(row.low)},${middle - 4}V${middle + 4}M${x(row.high)},${middle - 4}V${middle + 4}`}));
        end = x(row.high);
      }
    }
    group.append(shape("text", {x: end + 8, y: middle + 4}, width < 600 ? row.short : row.text));
    group.addEventListener("pointermove", event => showTip(event, element("b", {}, row.name), ...row.tip.map(([name, value]) => tipRow(null, name, value))));
    group.addEventListener("pointerleave", hideTip);
    svg.append(group);
  });
  return svg;
}
