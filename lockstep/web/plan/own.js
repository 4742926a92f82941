// SPDX-License-Identifier: Apache-2.0
// A plan as pictures and tables, for `plan --report` and for the planner page: memory over the step stacked by class,
// machines compared, every option with its reasons.
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
  const show = (i, where) => {
    cross.setAttribute("x1", x(i));
    cross.setAttribute("x2", x(i));
    cross.setAttribute("visibility", "visible");
    showTip(where, tipRow(null, "all", gigabytes(totals[i])),
      ...classes.filter(name => curve[name][i]).reverse().map(name => tipRow(memoryTones[name], name, gigabytes(curve[name][i]))));
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const share = ((event.clientX - box.left) * width / box.width - margin.left) / (width - margin.left - margin.right);
    show(Math.min(n - 1, Math.max(0, Math.round(share * (n - 1)))), event);
  });
  readByKeys(svg, totals.map((total, i) => [x(i), y(total)]), show, () => { cross.setAttribute("visibility", "hidden"); hideTip(); });
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

let page, data, options, best;  // what is drawn, and where

const isNumber = value => typeof value === "number" && Number.isFinite(value);
const whole = value => Math.round(value).toLocaleString("en-US");
const three = value => value >= 100 ? whole(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

function seconds(value) {
  if (!isNumber(value)) return "\u2013";
  if (value < 1e-3) return `${three(1e6 * value)}\u00a0\u00b5s`;
  if (value < 1) return `${three(1e3 * value)}\u00a0ms`;
  if (value < 60) return `${three(value)}\u00a0s`;
  if (value < 3600) return `${three(value / 60)}\u00a0min`;
  if (value < 360000) return `${three(value / 3600)}\u00a0h`;
  return `${three(value / 86400)}\u00a0d`;
}

// What few people read of many options opens when it is asked for.
function folded(content, count, words) {
  return count <= 12 ? content : element("details", {class: "panel"}, element("summary", {}, words), content);
}
function section(title, ...content) { page.append(element("h2", {}, title), ...content); }
function panel(...content) { return element("div", {class: "panel"}, ...content); }

const nameOf = option => option.as_written ? option.title : `${option.title} with ${changesOf(option)}`;
const changesOf = option => option.set.map(words => words.replace(/^training\./, "").replace(/recompute=\[(.*)\]/, (_, list) =>
  list === '"all"' ? "recompute all" : list ? `recompute ${list.split(",").length} blocks` : "recompute none").replace(/^micro_batch=0$/, "one pass")).join(", ");
const marksOf = i => [["fastest", "green"], ["cheapest", "blue"], ["smallest", "violet"]].filter(([key]) => best[key] === i);
const spread = option => option.step_seconds
  ? Math.max(option.step_seconds.high - option.step_seconds.value, option.step_seconds.value - option.step_seconds.low) / option.step_seconds.value : null;

function money(option) {
  const cost = option.cost;
  if (isNumber(cost.amount)) return `${three(cost.amount)}\u00a0${cost.currency}`;
  const bill = (cost.bills || []).find(each => each.kind !== "rent");
  if (bill) return `${three(bill.amount)}\u00a0${bill.unit}`;
  return isNumber(cost.kwh) ? `${three(cost.kwh)}\u00a0kWh` : "\u2013";
}

function drawHead() {
  const feasible = options.filter(option => option.feasible).length;
  page.append(element("div", {class: "top"}, element("h1", {}, data.name),
    element("span", {class: "pill", tone: feasible ? "green" : "red"}, feasible ? "fits" : "fits nowhere of these")));
  page.append(element("p", {class: "lead"}, data.description));
  page.append(element("p", {class: "headline"}, data.headline));
  const undriven = [...new Set(options.filter(option => !option.drivable).map(option =>
    `${option.gpu}: ${option.last_cuda ? `no current CUDA drives it (last: ${option.last_cuda})` : "CUDA does not drive it"}`))];
  if (undriven.length <= 4) for (const line of undriven) page.append(element("p", {class: "warn"}, line));
  else page.append(element("p", {class: "warn"}, `${undriven.length} of the GPUs are planned for, but current CUDA does not drive them ("planned only" below)`));
}

function drawCards() {
  const cards = element("div", {class: "cards"});
  const add = (label, value, note) => cards.append(element("div", {class: cards.children.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: "value"}, value), element("div", {class: "note"}, note || "")));
  for (const [key, label] of [["fastest", "fastest"], ["cheapest", `cheapest, by ${best.cheapest_by}`], ["smallest", "smallest that holds it"]]) {
    const option = options[best[key]];
    if (!option) continue;
    const value = key === "cheapest" ? money(option) : key === "smallest" ? option.title
      : seconds(isNumber(option.total_seconds) ? option.total_seconds : option.step_seconds.value);
    const note = key === "fastest" && !isNumber(option.total_seconds) ? `${nameOf(option)}, one step` : nameOf(option);
    add(label, value, key === "smallest" ? `${gigabytes(option.memory.total_bytes)} of ${gigabytes(option.memory.capacity_bytes)}${option.as_written ? "" : `, ${changesOf(option)}`}` : note);
  }
  const chosen = options[best.fastest] || options[0];
  if (!chosen) return;
  add("memory as written", gigabytes(options[0].memory.total_bytes), `${gigabytes(options[0].memory.peak_allocated_bytes)} alive at the peak`);
  if (isNumber(chosen.jobs) && chosen.jobs > 0) add("jobs", String(chosen.jobs), chosen.walltime_seconds ? `of ${seconds(chosen.walltime_seconds)} each` : "no walltime");
  if (isNumber(chosen.energy_joules)) add("energy", `${three(chosen.energy_joules / 3.6e6)}\u00a0kWh`, `fastest; PUE ${chosen.energy.pue}, ${chosen.energy.node_watts} W a node`);
  page.append(cards);
}

function drawMachines() {
  const rows = options.map((option, i) => {
    const step = option.step_seconds, rate = option.samples_per_second, marks = marksOf(i).map(([key]) => key);
    const run = isNumber(option.total_seconds) ? `${seconds(option.total_seconds)}, ${money(option)}` : "";
    const fit = option.fits ? "" : `does not fit: ${gigabytes(option.memory.total_bytes)} of ${gigabytes(option.memory.capacity_bytes)}`;
    return {
      name: option.as_written ? option.title : changesOf(option), changed: !option.as_written, value: rate, faint: !option.feasible,
      low: step ? rate * step.value / step.high : null, high: step ? rate * step.value / step.low : null,
      tone: option.feasible ? (marks.includes("fastest") ? "green" : "blue") : "grey",
      text: [isNumber(rate) ? `${three(rate)}/s` : "speed not known", fit || run, marks.join(", ")].filter(Boolean).join(" \u00b7 "),
      short: isNumber(rate) ? `${three(rate)}/s${fit ? ", no" : ""}` : "?",
      tip: [["step", step ? `${seconds(step.value)} (${seconds(step.low)} \u2013 ${seconds(step.high)})` : "not known"], ["basis", (option.basis || "").replace("_", " ")],
        ["memory", `${gigabytes(option.memory.total_bytes)} of ${gigabytes(option.memory.capacity_bytes)}`], ["run", seconds(option.total_seconds)], ["cost", money(option)]],
    };
  });
  section("Machines compared", panel(element("div", {class: "head"}, element("h3", {}, "Samples per second, with the interval of the forecast"),
    element("div", {class: "legend"}, element("span", {}, element("i", {tone: "green"}), "fastest"), element("span", {}, element("i", {tone: "blue"}), "fits"),
      element("span", {}, element("i", {tone: "grey"}), "does not fit, or never ends"))), barChart(rows, "machines compared")));
}

function memorySide(option) {
  const list = element("ul", {class: "pairs"});
  const total = option.memory.peak_reserved_bytes + option.memory.context_bytes + option.memory.nccl_bytes;
  const add = (tone, name, bytes) => bytes > 0 && list.append(element("li", {}, element("div", {class: "row"}, element("span", {}, name), element("span", {}, gigabytes(bytes))),
    element("div", {class: "bar"}, element("div", {tone, style: {width: `${Math.min(100, 100 * bytes / total)}%`}}))));
  for (const [name, bytes] of Object.entries(option.memory.by_class).sort((a, b) => b[1] - a[1])) add(memoryTones[name], name, bytes);
  add("grey", "reserved and not used (fragmentation)", option.memory.peak_reserved_bytes - option.memory.peak_allocated_bytes);
  add("grey", "CUDA context", option.memory.context_bytes);
  add("grey", "NCCL", option.memory.nccl_bytes);
  return panel(element("h3", {}, "At the peak, by class"), list,
    element("p", {class: "quiet"}, `Peak at ${option.memory.moment}. Cold, in step 1: ${gigabytes(option.memory.cold_peak_reserved_bytes)} reserved.`));
}

function timeSide(option) {
  const tones = ["blue", "orange", "green", "violet", "cyan", "pink", "olive", "brown", "red", "grey"];
  const parts = Object.entries(option.time_by_class || {}).filter(each => each[1] > 0).sort((a, b) => b[1] - a[1]);
  if (option.time.exposed_seconds > 0) parts.push(["waiting for the network", option.time.exposed_seconds]);
  const sum = parts.reduce((all, each) => all + each[1], 0);
  const split = element("div", {class: "split"}), legend = element("div", {class: "legend"});
  parts.forEach(([name, value], i) => {
    const tone = tones[Math.min(i, tones.length - 1)];
    split.append(element("div", {tone, class: "part", style: {flexGrow: String(value / sum)}, title: `${name}: ${seconds(value)}`}));
    legend.append(element("span", {}, element("i", {tone}), `${name.replaceAll("_", " ")} `, element("b", {}, `${seconds(value)}`)));
  });
  const step = option.step_seconds;
  return panel(element("div", {class: "head"}, element("h3", {}, `One step: ${seconds(step.value)} (${seconds(step.low)} \u2013 ${seconds(step.high)}, ${option.basis.replace("_", " ")})`)),
    split, legend, element("p", {class: "quiet", style: {marginTop: "10px"}},
      `The GPU is busy ${seconds(option.time.device_seconds)}, the launching thread ${seconds(option.time.host_seconds)}${option.time.host_bound ? ": the thread is the limit" : ""}. ` +
      `A pass takes ${option.levers.micro_batch} samples, a step ${option.levers.accumulation} ${option.levers.accumulation === 1 ? "pass" : "passes"} on each of ${Math.max(1, option.gpus)}.`));
}

function drawStep() {
  const shown = options.map((option, i) => [option, i]).filter(([option]) => option.memory.curve && option.memory.curve.event.length > 1);
  if (!shown.length) return;
  const host = element("div", {});
  const draw = option => host.replaceChildren(element("div", {class: "grid wide-left"},
    panel(element("div", {class: "head"}, element("h3", {}, "Memory alive over one step"),
      element("div", {class: "legend"}, Object.keys(memoryTones).filter(name => option.memory.curve[name]).map(name => element("span", {}, element("i", {tone: memoryTones[name]}), name)))),
      memoryChart(option)), memorySide(option)), option.step_seconds ? element("div", {style: {marginTop: "16px"}}, timeSide(option)) : "");
  const first = shown.find(([, i]) => i === best.fastest) || shown[0];
  const select = element("select", {"aria-label": "option"}, shown.map(([option, i]) => {
    const choice = element("option", {value: String(i)}, nameOf(option) + marksOf(i).map(([key]) => `, ${key}`).join(""));
    if (i === first[1]) choice.setAttribute("selected", "");
    return choice;
  }));
  select.addEventListener("change", () => draw(options[Number(select.value)]));
  section("The step", element("p", {class: "pick"}, "on ", select), host);
  draw(first[0]);
}

function optionRow(option, i) {
  const number = text => element("td", {class: "number"}, text);
  const width = spread(option);
  return element("tr", {class: option.as_written ? "option" : "option changed"},
    element("td", {}, option.as_written ? option.title : changesOf(option), option.drivable ? null : element("span", {class: "pill", tone: "orange"}, "planned only"),
      marksOf(i).map(([key, tone]) => element("span", {class: "pill", tone}, key))),
    element("td", {}, element("span", {class: "pill", tone: option.fits ? "green" : "red", style: {margin: 0}}, option.fits ? "yes" : "no")),
    number(`${gigabytes(option.memory.total_bytes)} / ${gigabytes(option.memory.capacity_bytes)}`),
    number(option.step_seconds ? `${seconds(option.step_seconds.value)} \u00b1${Math.round(100 * width)}\u00a0%` : "\u2013"),
    number(isNumber(option.samples_per_second) ? three(option.samples_per_second) : "\u2013"), number(seconds(option.epoch_seconds)),
    number(option.jobs === 0 ? "never" : option.fits ? seconds(option.total_seconds) : "\u2013"), number(option.feasible && option.jobs ? whole(option.jobs) : "\u2013"),
    number(option.feasible && isNumber(option.energy_joules) ? three(option.energy_joules / 3.6e6) : "\u2013"), number(option.feasible ? money(option) : "\u2013"));
}

function drawTable() {
  const head = ["", "fits", "memory", "step", "samples/s", "epoch", "run", "jobs", "kWh", "cost"].map((name, i) => element("th", {class: i > 1 ? "number" : ""}, name));
  section("All options", panel(element("div", {class: "scroll"}, element("table", {class: "options"}, element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, options.map(optionRow))))));
}

function drawWhy() {
  const reasons = element("div", {class: "panel reasons"});
  for (const option of options) {
    const list = element("ul", {class: "why"}, option.why.map(line => element("li", {}, line)));
    if (option.set.length) list.append(element("li", {}, "change: ", element("code", {}, option.set.map(words => `--set '${words.replaceAll("'", "'\\''")}'`).join(" "))));
    reasons.append(element("div", {}, element("h3", {}, nameOf(option)), list));
  }
  section("Why", folded(reasons, options.length, `the reasons of ${options.length} options`));
}

function drawBills() {
  const body = element("tbody", {});
  const seen = new Set();
  for (const option of options) {
    if (!option.as_written && options.some(other => other.as_written && other.fits && other.title === option.title)) continue;
    for (const bill of option.cost.bills || []) {
      const key = [option.title, bill.kind, bill.payee].join("|");
      if (!option.feasible || seen.has(key) || seen.size >= 60) continue;
      seen.add(key);
      body.append(element("tr", {}, element("td", {}, nameOf(option)), element("td", {}, bill.kind), element("td", {}, bill.payee || "not named"),
        element("td", {class: "number"}, `${three(bill.amount)} ${bill.unit}`), element("td", {}, bill.rule), element("td", {}, `${bill.source}, ${bill.date}`)));
    }
  }
  if (!body.children.length) return;
  const head = ["", "kind", "who", "amount", "rule", "source"].map((name, i) => element("th", {class: i === 3 ? "number" : ""}, name));
  const bills = panel(element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, head)), body)));
  section("Money", folded(bills, body.children.length, `${body.children.length} prices with their sources`));
}

function drawOrigin() {
  const list = element("dl", {});
  for (const [key, value] of Object.entries(data.assumptions)) list.append(element("dt", {}, key), element("dd", {}, value));
  const notes = element("ul", {class: "why"}, data.notes.map(note => element("li", {}, note)));
  const cells = element("div", {class: "grid"}, panel(element("h3", {style: {marginBottom: "10px"}}, "Assumed; --assume KEY=VALUE changes it"), list));
  const made = element("dl", {});
  for (const [key, value] of [["lockstep", `${data.version} (${data.commit})`], ["job SHA-256", data.job_sha256], ["model", `${data.model}, ${whole(data.parameters)} parameters`],
    ["checkpoint", gigabytes(data.checkpoint_bytes)], ["traced", `${data.timing.traces} steps in ${seconds(data.timing.trace_seconds)}, forecast in ${seconds(data.timing.forecast_seconds)}`]]) {
    if (value) made.append(element("dt", {}, key), element("dd", {}, value));
  }
  cells.append(panel(element("h3", {style: {marginBottom: "10px"}}, "How it was made"), made, data.notes.length ? notes : ""));
  section("What it rests on", cells);
  if (data.job) {
    page.append(element("details", {class: "panel", style: {marginTop: "16px"}}, element("summary", {}, "The job document"),
      element("pre", {}, JSON.stringify(data.job, null, 2))));
  }
  page.append(element("footer", {}, `Made by lockstep ${data.version}. A forecast with its interval; this file is complete in itself.`));
}

// The whole plan, at the end of `host`.
function drawPlan(host, plan) {
  page = host;
  data = plan;
  options = plan.options;
  best = plan.best;
  for (const draw of [drawHead, drawCards, drawMachines, drawStep, drawTable, drawWhy, drawBills, drawOrigin]) draw();
}
