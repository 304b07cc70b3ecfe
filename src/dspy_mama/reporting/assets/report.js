"use strict";
(() => {
  const list = document.getElementById("pairs");
  const controls = document.getElementById("controls");
  if (!list || !controls) return;
  const pairs = Array.from(list.children);
  const field = (name) => controls.elements.namedItem(name);
  const count = document.getElementById("shown");
  const texts = new Map(pairs.map((pair) => [pair, pair.textContent.toLowerCase()]));
  const matches = (pair) => {
    const data = pair.dataset;
    const domain = field("domain").value;
    const verdict = field("verdict").value;
    const said = domain ? [data[domain]] : [data.medical, data.ethical, data.legal];
    const wrong = domain ? data.wrong.split(" ").includes(domain) : data.wrong !== "";
    return (!verdict || said.includes(verdict))
      && (!field("wrong").checked || wrong)
      && (!field("review").checked || data.review === "1")
      && (!field("override") || !field("override").checked || data.override === "1")
      && texts.get(pair).includes(field("text").value.trim().toLowerCase());
  };
  const orders = {
    order: (pair) => Number(pair.dataset.order),
    errors: (pair) => -Number(pair.dataset.errors),
    probability: (pair) => -Number(pair.dataset.probability),
    length: (pair) => -Number(pair.dataset.length),
  };
  const show = () => {
    const key = orders[field("sort").value] || orders.order;
    const sorted = [...pairs].sort((a, b) => key(a) - key(b) || orders.order(a) - orders.order(b));
    let visible = 0;
    for (const pair of sorted) {
      pair.hidden = !matches(pair);
      visible += pair.hidden ? 0 : 1;
      list.append(pair);
    }
    count.textContent = `${visible} of ${pairs.length} pairs shown`;
  };
  controls.hidden = false;
  controls.addEventListener("input", show);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(show));
  document.getElementById("open-all").addEventListener("click", () => {
    const closed = pairs.some((pair) => !pair.hidden && !pair.open);
    for (const pair of pairs) if (!pair.hidden) pair.open = closed;
  });
  show();
})();
