// SPDX-License-Identifier: Apache-2.0
// Follows a run: asks the server what is new, and draws again what has changed.
"use strict";

const page = document.getElementById("page");
const everySeconds = 2, patienceSeconds = 10;

// Everything told so far; `run` is how the run stands by the last answer.
let run = null, steps = [], evaluations = [], start = {}, cursor = null;
let paused = false, trouble = "", drawnFrom = "";

function take(answer) {
  if (answer.reset) { steps = []; evaluations = []; start = answer.start || {}; }
  steps.push(...answer.steps);
  evaluations.push(...answer.evaluations);
  cursor = answer.cursor;
  run = answer;
  while (steps.length > 1500) steps = thinned(steps);
}

// Of the older half every second point goes: a page that is open for a week stays light.
function thinned(points) {
  const half = Math.floor(points.length / 2);
  return points.filter((_, i) => i >= half || i % 2 === 0);
}

const words = () => start.report || {title: "Accuracy", share: true, higher_is_better: true, training: "accuracy", validation: "top1"};
const figureText = value => words().share ? percent(value) : compact(value);
const bytesText = value => quantity(value, "B");

// ---------------------------------------------------------------- the parts, made once and filled again
const parts = {};
function part(name, ...attributes) {
  parts[name] = element("div", {id: name, ...attributes[0]});
  return parts[name];
}

function layOut() {
  const pause = element("button", {type: "button", id: "pause", "aria-pressed": "false"}, "Pause");
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    ask();
  });
  page.replaceChildren(part("head"), part("progress"), element("div", {class: "row-of-actions"}, part("news", {role: "status"}), pause),
    part("cards", {class: "cards"}), part("trouble"), element("h2", {}, "Learning"), part("learning", {class: "grid"}),
    element("h2", {}, "Speed"), part("speed", {class: "grid"}), part("time"), part("promise"), part("chain"), part("log"), part("history"));
}

function fill(name, ...content) { parts[name].replaceChildren(...content.filter(Boolean)); }

function drawHead() {
  fill("head", element("div", {class: "top"}, element("h1", {}, run.name), statusPill(run.status)),
    element("p", {class: "lead"}, [run.run, run.about, run.outcome === run.status ? null : run.outcome].filter(Boolean).join(" \u00b7 ")));
  document.title = `${run.total_steps ? Math.floor(100 * run.step / run.total_steps) : 0} % ${run.name} - lockstep`;
  const share = run.total_steps ? Math.min(1, run.step / run.total_steps) : 0;
  fill("progress", element("div", {class: "progress", role: "progressbar", "aria-label": "steps done", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(Math.floor(100 * share))},
    element("div", {style: {width: `${(100 * share).toFixed(2)}%`}})));
}

function drawCards() {
  const cards = [];
  const add = (label, value, note) => cards.push(element("div", {class: cards.length ? "card" : "card first"},
    element("div", {class: "label"}, label), element("div", {class: "value"}, value), element("div", {class: "note"}, note || "")));
  add("Step", `${whole(run.step)}${run.total_steps ? ` of ${whole(run.total_steps)}` : ""}`, isNumber(run.epoch) ? `epoch ${run.epoch.toFixed(2)}${isNumber(run.epochs) ? ` of ${compact(run.epochs)}` : ""}` : "");
  if (isNumber(run.left)) add("Time left", duration(run.left), `${duration(run.elapsed)} so far`);
  else if (run.elapsed > 0) add("Time", duration(run.elapsed), "steps, evaluations, saves");
  if (isNumber(run.loss)) add("Loss", run.loss.toFixed(3), "training, last second");
  if (run.score) add(words().title, figureText(run.score.value), `best ${figureText(run.score.best)} at step ${whole(run.score.best_step)}`);
  if (isNumber(run.samples_per_second)) add("Throughput", `${compact(run.samples_per_second)}/s`, isNumber(run.step_seconds) ? `${quantity(run.step_seconds, "s")} a step` : "");
  if (isNumber(run.memory)) add("Peak memory", bytesText(run.memory), "of rank 0");
  if (isNumber(run.watts)) add("Power", `${Math.round(run.watts)} W`, "GPU of rank 0");
  fill("cards", ...cards);
}

const pointsOf = (rows, key) => {
  const byEpoch = steps.length > 0 && steps.every(each => isNumber(each.epoch));
  const xOf = each => byEpoch ? each.epoch : each.step;
  return rows.filter(each => isNumber(each[key]) && isNumber(xOf(each))).map(each => [xOf(each), each[key]]);
};

function drawCurves() {
  const xName = steps.length > 0 && steps.every(each => isNumber(each.epoch)) ? "epoch" : "step";
  fill("learning",
    lineChart({title: "Loss", xName, format: value => value.toFixed(3), fromZero: true, series: [
      ...withTrend("training", "blue", pointsOf(steps, "loss")),
      {name: "validation", tone: "orange", points: pointsOf(evaluations, "loss"), dots: true}]}),
    lineChart({title: words().title, xName, format: figureText, fromZero: true, empty: "No evaluation yet.",
      ...(words().share ? {axis: value => `${Math.round(100 * value)} %`, top: 1} : {}), series: [
        ...withTrend("training", "blue", pointsOf(steps, words().training)),
        {name: "validation", tone: "orange", points: pointsOf(evaluations, words().validation), dots: true}]}));
  const gauges = [lineChart({title: "Throughput, images per second", xName, format: value => compact(value), fromZero: true,
    series: withTrend("all ranks", "green", pointsOf(steps, "samples_per_second"))})];
  if (steps.some(each => isNumber(each.memory))) gauges.push(lineChart({title: "Peak memory", xName, format: bytesText, axis: bytesText, fromZero: true,
    series: [{name: "rank 0", tone: "cyan", points: pointsOf(steps, "memory")}]}));
  if (steps.some(each => isNumber(each.watts))) gauges.push(lineChart({title: "Power, watts", xName, format: value => value.toFixed(0), fromZero: true,
    series: withTrend("GPU of rank 0", "red", pointsOf(steps, "watts"))}));
  fill("speed", ...gauges);
}

function drawRest() {
  fill("time", timePanel(run.time), slowPanel(run.slowness));
  const promise = promisePanel(run.promise);
  fill("promise", promise && element("h2", {}, "Promise against fact"), promise);
  const chain = run.chain;
  fill("chain", chain && element("h2", {}, "Chain of jobs"), chain && element("div", {class: "panel"},
    element("p", {class: "quiet"}, [`${chain.links.length}${chain.planned_links ? ` of ${chain.planned_links} planned` : ""} begun`, chain.waiting > 0 ? `${chain.waiting} in the queue` : null, chain.over ? `over: ${chain.over}` : null].filter(Boolean).join(", ")),
    chain.links.length ? table(["link", "job", "host", "from step", "state"], chain.links.map(each => [String(each.link), each.job, each.host, whole(each.from_step), each.state]), [0, 3]) : null));
  fill("log", run.lines.length ? element("h2", {}, "Log") : null, run.lines.length ? element("pre", {class: "panel log", tabindex: "0", "aria-label": "last lines of the log"}, run.lines.join("\n")) : null);
  parts.log.querySelectorAll("pre").forEach(each => { each.scrollTop = each.scrollHeight; });
  fill("history", run.sessions.length > 1 ? element("h2", {}, "Sessions") : null, run.sessions.length > 1 ? historyTable(run.sessions, run.status) : null);
  fill("trouble", run.warnings.length ? element("div", {class: "panel warnings", role: "alert"}, element("h3", {}, "Warnings"), element("ul", {}, run.warnings.slice(-5).map(each => element("li", {}, each)))) : null);
}

// Why nothing is asked. To draw a chart again would take the focus of whoever reads it by keys.
const resting = () => paused ? "paused" : page.querySelector(".chart :focus-visible") ? "rests while a chart is read" : "";

function drawNews() {
  const silent = run && run.status === "running" && run.silent > 60 ? `; the journal has not grown for ${duration(run.silent)}` : "";
  const news = trouble || resting() || `as of ${new Date().toLocaleTimeString()}${silent}`;
  if (parts.news.textContent !== news) fill("news", element("span", {class: trouble ? "outside" : "quiet"}, news));
}

// What was told since the last drawing decides: a page nobody feeds is not drawn again.
function draw() {
  const now = JSON.stringify([run.cursor, run.status, run.lines, run.warnings, run.chain]);
  if (now !== drawnFrom) {
    drawnFrom = now;
    for (const each of [drawHead, drawCards, drawCurves, drawRest]) each();
  }
  drawNews();
  document.documentElement.dataset.drawn = "yes";
  document.documentElement.dataset.step = String(run.step);
}

let asking = false;
async function ask() {
  if (resting()) return drawNews();
  if (asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch(`run.json?voids=${cursor.voids}&steps=${cursor.steps}&evaluations=${cursor.evaluations}`,
      {signal: AbortSignal.timeout(1000 * patienceSeconds)});
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
    trouble = "";
    take(body);
    draw();
  } catch (error) {
    trouble = error instanceof TypeError || error.name === "TimeoutError" ? "lockstep report --live does not answer; is it still there, and the tunnel to it?" : error.message;
    drawNews();
  }
  asking = false;
}

window.addEventListener("error", event => {
  page.prepend(element("div", {id: "problem"}, `This page could not be drawn completely: ${event.message}`));
});
layOut();
take(JSON.parse(document.getElementById("data").textContent));
draw();
setInterval(ask, 1000 * everySeconds);
document.addEventListener("visibilitychange", ask);
