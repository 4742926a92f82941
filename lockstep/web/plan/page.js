// SPDX-License-Identifier: Apache-2.0
// The page of `plan --report`: the plan that is in this file.
"use strict";

const main = document.getElementById("page");

window.addEventListener("error", event => {
  main.prepend(element("div", {id: "problem"}, `This plan could not be drawn completely: ${event.message}`));
});

drawPlan(main, JSON.parse(document.getElementById("data").textContent));
document.documentElement.dataset.drawn = "yes";
