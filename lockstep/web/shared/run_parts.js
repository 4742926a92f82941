// SPDX-License-Identifier: Apache-2.0
// What the pages about runs have in common: numbers in words, and panels made of parts of a journal.
"use strict";

const percent = share => `${(100 * share).toFixed(1)}\u00a0%`;  // a line never breaks before its unit
const whole = value => Math.round(value).toLocaleString("en-US");
const isNumber = value => typeof value === "number" && Number.isFinite(value);

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const s = Math.round(seconds), two = value => String(value).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)} min`;
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)} h`;
}

const moment = seconds => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 16) + " UTC";

function quantity(value, unit) {
  if (unit === "B") return value >= 1e9 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e6).toFixed(0)} MB`;
  if (unit === "1/s") return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} /s`;
  return value < 1 ? `${(1000 * value).toPrecision(3)} ms` : value < 120 ? `${value.toPrecision(3)} s` : duration(value);
}

function statusPill(status) {
  const tones = {finished: "green", running: "blue", starting: "blue", queued: "violet", stopped: "orange"};
  return element("span", {class: "pill", tone: tones[status] || "red"}, status);
}

function table(head, rows, numbers) {
  const kind = i => numbers.includes(i) ? "number" : "";
  const body = rows.map(cells => element("tr", {}, cells.map((cell, i) => element("td", {class: kind(i)}, cell))));
  return element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, head.map((name, i) => element("th", {class: kind(i)}, name)))), element("tbody", {}, body)));
}

// A centred mean over a fortieth of the run: the trend of a noisy curve, without lag.
function smooth(points) {
  const reach = Math.max(1, Math.round(points.length / 80));
  return points.map(([x], i) => {
    const near = points.slice(Math.max(0, i - reach), i + reach + 1);
    return [x, near.reduce((sum, point) => sum + point[1], 0) / near.length];
  });
}

function withTrend(name, tone, points) {
  if (points.length < 60) return [{name, tone, points}];
  return [{name, tone, points, faint: true}, {name, tone, points: smooth(points)}];
}

const timeTones = {"data wait": "orange", compute: "blue", communication: "violet", save: "green", evaluation: "red", "cached features": "cyan", other: "grey"};

// Null when there is nothing to split.
function timePanel(time) {
  const parts = Object.entries(time).filter(([, seconds]) => seconds > 0);
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (!total) return null;
  const bar = element("div", {class: "split"}), legend = element("div", {class: "legend"});
  for (const [name, seconds] of parts) {
    const tone = timeTones[name] || "grey";
    const part = element("div", {tone, style: {flex: `${seconds / total} 1 0`}});
    part.addEventListener("pointermove", event => showTip(event, tipRow(tone, name, `${duration(seconds)}, ${percent(seconds / total)}`)));
    part.addEventListener("pointerleave", hideTip);
    bar.append(part);
    legend.append(element("span", {}, element("i", {tone}), `${name} `, element("b", {}, percent(seconds / total)), ` ${duration(seconds)}`));
  }
  return element("div", {class: "panel below", style: {marginTop: "16px"}},
    element("div", {class: "head"}, element("h3", {}, "Where the time went")), bar, legend);
}

// "Why is it slow?", the costliest first. Null: too few steps were taken to say.
function slowPanel(slowness) {
  const findings = slowness && slowness.findings || [];
  if (!findings.length) return null;
  const list = element("ol", {class: "slow"});
  for (const each of findings) {
    list.append(element("li", {}, element("div", {class: "row"}, element("span", {}, each.what), element("b", {}, percent(each.share))),
      each.advice ? element("div", {class: "advice"}, each.advice) : null));
  }
  return element("div", {class: "panel below", style: {marginTop: "16px"}},
    element("div", {class: "head"}, element("h3", {}, "Why is it not faster?"), element("span", {class: "legend"}, "first what a setting would change")), list);
}

// Null without a plan.
function promisePanel(promise) {
  if (!promise || !promise.rows || !promise.rows.length) return null;
  const rows = promise.rows.map(row => {
    const show = value => quantity(value, row.unit);
    return [row.what, show(row.promised), show(row.measured), `${row.deviation < 0 ? "\u2212" : "+"}${Math.abs(100 * row.deviation).toFixed(1)} %`,
      row.inside ? "inside" : element("span", {class: "outside"}, "outside"), element("span", {class: "quiet"}, `${show(row.low)} \u2013 ${show(row.high)}`)];
  });
  const why = (promise.why || []).map(line => element("li", {}, line));
  const words = `Planned for ${promise.title}; measured ${promise.when === "end" ? "to the end" : "after the warm-up"}, at step ${whole(promise.step)}.`;
  return element("div", {class: "panel"}, element("p", {class: "quiet"}, words),
    table(["", "promise", "fact", "difference", "", "interval"], rows, [1, 2, 3, 5]),
    why.length ? [element("h3", {}, "Why it differs"), element("ul", {}, why)] : []);
}

function historyTable(sessions, status) {
  const body = element("tbody", {});
  sessions.forEach((each, i) => {
    const outcome = each.outcome === "broke off" && status === "running" && i === sessions.length - 1 ? "running" : each.outcome;
    body.append(element("tr", {class: "told"}, element("td", {}, moment(each.began)), element("td", {}, each.host || ""), element("td", {class: "number"}, String(each.ranks || "")),
      element("td", {class: "number"}, `${whole(each.from_step || 0)} \u2013 ${whole(each.to_step || each.from_step || 0)}`),
      element("td", {class: "number"}, duration(Math.max(0, each.ended - each.began)))),
      element("tr", {}, element("td", {class: "words", colspan: "5"}, outcome)));
  });
  const head = ["began", "host", "ranks", "steps", "lasted"].map((name, i) => element("th", {class: i > 1 ? "number" : ""}, name));
  return element("div", {class: "panel"}, element("h3", {}, sessions.length > 1 ? "History of restarts" : "History"),
    element("div", {class: "scroll"}, element("table", {}, element("thead", {}, element("tr", {}, head)), body)));
}
