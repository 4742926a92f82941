// SPDX-License-Identifier: Apache-2.0
// Small charts drawn as SVG. Text only ever enters the page as text nodes, never as markup.
"use strict";

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "tone") node.style.setProperty("--tone", `var(--${value})`);
    else if (key === "style") Object.assign(node.style, value);
    else node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function shape(tag, attributes, content) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (content !== undefined) node.textContent = content;
  return node;
}

const tip = document.getElementById("tip");

function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const room = document.documentElement.clientWidth;
  const left = Math.min(event.clientX + 14, room - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left) + window.scrollX}px`;
  const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.top = `${window.scrollY + (below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12)}px`;
}

function hideTip() { tip.hidden = true; }

function tipRow(tone, name, value) {
  return element("div", {class: "row"}, element("span", {}, tone ? element("i", {tone}) : null, name), element("b", {}, value));
}

// Round steps of 1, 2 or 5 times a power of ten, about `count` of them.
function niceTicks(low, high, count) {
  if (!(high > low)) { high = low + Math.max(1e-9, Math.abs(low) * 0.1 || 1); }
  const raw = (high - low) / count;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = power * [1, 2, 5, 10].find(multiple => multiple * power >= raw * 0.75);
  const ticks = [];
  for (let i = Math.floor(low / step + 1e-9); i * step <= high + step * 0.999; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function compact(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
  if (size < 1e-3) return value.toExponential(1).replace(".0e", "e").replace("e-", "e\u2212");
  return String(Number(value.toPrecision(4)));
}

// A learning rate as jobs write it: 0.00025, and 1.5e-5 where zeros would have to be counted.
function rateText(value) {
  const short = Number(value.toPrecision(3));
  return value === 0 || Math.abs(value) >= 1e-4 ? String(short) : short.toExponential();
}

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(words, size) {
  ruler.font = `${size}px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;  // as page.css has it
  return ruler.measureText(words).width;
}

// Redraws when the panel changes its width: a phone turned on its side, a window resized.
function responsive(host, draw) {
  let width = 0;
  const redraw = () => {
    const now = Math.round(host.clientWidth);
    if (now > 0 && now !== width) { width = now; host.replaceChildren(draw(now)); }
  };
  redraw();
  if (window.ResizeObserver) new ResizeObserver(() => setTimeout(redraw)).observe(host);
}

function pathOf(points, x, y) {
  return points.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(1)},${y(py).toFixed(1)}`).join("");
}

// options: title, series [{name, tone, points [[x, y]], faint, dots, dash}], xName, format(y), fromZero, top
function lineChart(options) {
  const drawn = options.series.filter(series => series.points.length > 0);
  const panel = element("div", {class: "panel"});
  const legend = element("div", {class: "legend"});
  for (const series of drawn.filter(each => !each.faint)) {
    const last = series.points[series.points.length - 1][1];
    legend.append(element("span", {}, element("i", {tone: series.tone, class: series.dash ? "dashed" : ""}), `${series.name} `, element("b", {}, options.format(last))));
  }
  panel.append(element("div", {class: "head"}, element("h3", {}, options.title), legend));
  const host = element("div", {class: "chart"});
  panel.append(host);
  if (!drawn.length) {
    host.append(element("p", {class: "quiet"}, options.empty || "Nothing recorded yet."));
    return panel;
  }
  queueMicrotask(() => responsive(host, width => drawLines(options, drawn, width)));
  return panel;
}

function drawLines(options, drawn, width) {
  const height = width < 420 ? 200 : 240;
  const xs = drawn.flatMap(series => series.points.map(point => point[0]));
  const ys = drawn.flatMap(series => series.points.map(point => point[1]));
  const yTicks = niceTicks(options.fromZero ? 0 : Math.min(...ys), options.top || Math.max(...ys), 4);
  const [yLow, yHigh] = [yTicks[0], yTicks[yTicks.length - 1]];
  const yLabels = yTicks.map(options.axis || compact);
  const margin = {left: 14 + Math.max(...[options.xName, ...yLabels].map(words => textWidth(words, 11.5))), right: 20, top: 10, bottom: 30};
  const xLow = Math.min(0, ...xs), xHigh = Math.max(...xs) > xLow ? Math.max(...xs) : xLow + 1;
  const x = value => margin.left + (value - xLow) / (xHigh - xLow) * (width - margin.left - margin.right);
  const y = value => height - margin.bottom - (value - yLow) / (yHigh - yLow) * (height - margin.top - margin.bottom);
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.title});
  yTicks.forEach((tick, i) => {
    svg.append(shape("line", {class: "grid-line", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick)}));
    svg.append(shape("text", {x: margin.left - 8, y: y(tick) + 4, "text-anchor": "end"}, yLabels[i]));
  });
  for (const tick of niceTicks(xLow, xHigh, width < 420 ? 4 : 7).filter(value => value <= xHigh)) {
    const reach = x(tick) + textWidth(compact(tick), 11.5) / 2 > width;
    svg.append(shape("text", {x: reach ? width : x(tick), y: height - 10, "text-anchor": reach ? "end" : "middle"}, compact(tick)));
  }
  svg.append(shape("text", {x: margin.left - 8, y: height - 10, "text-anchor": "end"}, options.xName));
  for (const series of drawn) {
    const color = `var(--${series.tone})`;
    svg.append(shape("path", {
      class: "curve", d: pathOf(series.points, x, y), fill: "none", stroke: color, "stroke-width": series.faint ? 1 : 2.2,
      "stroke-opacity": series.faint ? .3 : 1, "stroke-linejoin": "round", "stroke-linecap": "round",
      ...(series.dash ? {"stroke-dasharray": series.dash} : {}),
    }));
    if (series.dots || series.points.length === 1) {
      for (const [px, py] of series.points) svg.append(shape("circle", {cx: x(px), cy: y(py), r: 3.2, fill: color, stroke: "var(--surface)", "stroke-width": 1.5}));
    }
  }
  addCrosshair(svg, options, drawn, {x, y, xLow, xHigh, width, height, margin});
  return svg;
}

function nearestPoint(points, value) {
  return points.reduce((best, point) => Math.abs(point[0] - value) < Math.abs(best[0] - value) ? point : best);
}

// What the pointer finds at these places [x, y] of a drawing the arrow keys find one by one, Page Up and Page Down by the tenth,
// Home and End at its ends. show(i, where) tells it, by the tip, which is a status and so read aloud; Escape and leaving hide it.
function readByKeys(svg, places, show, hide) {
  const last = places.length - 1, tenth = Math.max(1, Math.round(places.length / 10));
  let at = -1;
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("role", "application");  // of which screen readers pass the arrow keys on
  svg.setAttribute("aria-label", `${svg.getAttribute("aria-label")}: arrow keys tell its values`);
  svg.addEventListener("keydown", event => {
    const back = step => at < 0 ? last : at - step;
    const to = {ArrowRight: at + 1, ArrowLeft: back(1), PageDown: at + tenth, PageUp: back(tenth), Home: 0, End: last}[event.key];
    if (event.key === "Escape") hide();
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    at = Math.min(last, Math.max(0, to));
    const point = new DOMPoint(...places[at]).matrixTransform(svg.getScreenCTM());
    show(at, {clientX: point.x, clientY: point.y});
  });
  svg.addEventListener("blur", hide);
  svg.addEventListener("pointerleave", hide);
}

function addCrosshair(svg, options, drawn, frame) {
  const cross = shape("line", {class: "cross", y1: frame.margin.top, y2: frame.height - frame.margin.bottom, visibility: "hidden"});
  const marks = shape("g", {});
  svg.append(cross, marks);
  const readable = drawn.filter(series => !series.faint);
  if (!readable.length) return;
  const dense = readable.reduce((a, b) => a.points.length >= b.points.length ? a : b).points;
  const show = (px, where) => {
    cross.setAttribute("x1", frame.x(px));
    cross.setAttribute("x2", frame.x(px));
    cross.setAttribute("visibility", "visible");
    marks.replaceChildren();
    const rows = [tipRow(null, options.xName, compact(px))];
    for (const series of readable) {
      const [sx, sy] = nearestPoint(series.points, px);
      marks.append(shape("circle", {cx: frame.x(sx), cy: frame.y(sy), r: 4, fill: `var(--${series.tone})`, stroke: "var(--surface)", "stroke-width": 1.5}));
      rows.push(tipRow(series.tone, series.name, options.format(sy)));
    }
    showTip(where, ...rows);
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const offset = (event.clientX - box.left) * frame.width / box.width;
    const share = (offset - frame.margin.left) / (frame.width - frame.margin.left - frame.margin.right);
    if (share >= -0.02 && share <= 1.02) show(nearestPoint(dense, frame.xLow + share * (frame.xHigh - frame.xLow))[0], event);
  });
  readByKeys(svg, dense.map(([px, py]) => [frame.x(px), frame.y(py)]), (i, where) => show(dense[i][0], where),
    () => { cross.setAttribute("visibility", "hidden"); marks.replaceChildren(); hideTip(); });
}

// Rows are what a sample is, columns what the network said; shade is the share of the row.
function confusionChart(names, counts) {
  const host = element("div", {class: "scroll"});
  queueMicrotask(() => responsive(host, width => drawConfusion(names, counts, width)));
  return host;
}

function drawConfusion(names, counts, width) {
  const n = names.length;
  const size = n <= 15 ? 12 : n <= 45 ? 10 : 8;
  const short = name => name.length > 26 ? `${name.slice(0, 17)}\u2026${name.slice(-8)}` : name;  // endings tell names apart
  const label = Math.max(...names.map(name => textWidth(short(name), size))) + 12;
  const angle = n <= 15 ? 52 : 80;
  const beyond = n <= 60 ? label * Math.cos(angle * Math.PI / 180) : 0;  // the last column's name leans out
  const cell = Math.max(n <= 15 ? 22 : n <= 60 ? 11 : 6, Math.min(n <= 10 ? 54 : 44, Math.floor((width - label - beyond - 8) / n)));
  const top = label * Math.sin(angle * Math.PI / 180) + 6, gap = cell > 14 ? 2 : 1;
  const total = {width: label + n * cell + beyond + 4, height: top + n * cell + 6};
  const svg = shape("svg", {width: total.width, height: total.height, role: "img", "aria-label": "confusion matrix"});
  counts.forEach((row, t) => {
    const sum = row.reduce((a, b) => a + b, 0);
    if (size <= cell + 2) {
      svg.append(shape("text", {x: label - 7, y: top + (t + .5) * cell + size * .36, "text-anchor": "end", "font-size": size}, short(names[t])));
      const cx = label + (t + .5) * cell;
      svg.append(shape("text", {x: cx, y: top - 6, "font-size": size, transform: `rotate(-${angle} ${cx} ${top - 6})`}, short(names[t])));
    }
    row.forEach((count, p) => {
      const share = sum ? count / sum : 0;
      const right = t === p;
      const rect = shape("rect", {
        class: "cell", x: label + p * cell, y: top + t * cell, width: cell - gap, height: cell - gap, rx: Math.min(4, cell / 5),
        fill: count ? `var(--${right ? "blue" : "orange"})` : "var(--faint)",
        "fill-opacity": count ? (right ? .12 + .88 * share : .18 + .82 * Math.min(1, Math.sqrt(share * 2))).toFixed(3) : 1,
      });
      rect.addEventListener("pointermove", event => showTip(event,
        element("div", {}, right ? `${names[t]}: recognised` : `${names[t]} taken for ${names[p]}`),
        tipRow(null, `${count} of ${sum}`, sum ? `${(100 * share).toFixed(1)} %` : "-")));
      rect.addEventListener("pointerleave", hideTip);
      svg.append(rect);
      if (n <= 15 && count && cell >= 22) {
        const strong = right ? share > .45 : share > .2;
        svg.append(shape("text", {
          x: label + (p + .5) * cell - gap / 2, y: top + (t + .5) * cell + 3, "text-anchor": "middle", "font-size": cell > 30 ? 12 : 10,
          style: `fill: var(--${strong ? "surface" : "ink"}); pointer-events: none`,
        }, String(count)));
      }
    });
  });
  return svg;
}
