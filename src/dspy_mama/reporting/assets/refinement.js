"use strict";
(() => {
  const list = document.getElementById("pairs");
  const controls = document.getElementById("controls");
  if (!list || !controls || !list.children.length) return;
  const items = Array.from(list.children);
  const field = (name) => controls.elements.namedItem(name);
  const count = document.getElementById("shown");
  // Texts are read when they are first searched: a run of 900 answers holds millions of characters.
  const texts = new Map();
  const text = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const matches = (item) => {
    const data = item.dataset;
    const sought = field("text").value.trim().toLowerCase();
    return ["status", "principle", "category"].every((name) => !field(name).value || field(name).value === data[name])
      && (!field("changed").checked || data.changed === "1")
      && (!field("flagged").checked || data.flagged === "1")
      && (!sought || text(item).includes(sought));
  };
  const order = (item) => Number(item.dataset.order);
  const largest = (name) => (item) => {
    const value = Number(item.dataset[name]);
    return Number.isNaN(value) ? Infinity : -value;
  };
  const orders = { order, iterations: largest("iterations"), ama: largest("ama"), sra: largest("sra"), gain: largest("gain") };
  let sortedBy = "order";
  const show = () => {
    let visible = 0;
    for (const item of items) {
      item.hidden = !matches(item);
      visible += item.hidden ? 0 : 1;
    }
    const name = field("sort").value;
    if (name !== sortedBy) {
      sortedBy = name;
      const key = orders[name] || order;
      const by = (a, b) => (key(a) === key(b) ? order(a) - order(b) : key(a) - key(b));
      list.append(...[...items].sort(by));
    }
    count.textContent = `${visible} of ${items.length} answers shown`;
  };
  controls.hidden = false;
  controls.addEventListener("input", show);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(show));
  document.getElementById("open-all").addEventListener("click", () => {
    const closed = items.some((item) => !item.hidden && !item.open);
    for (const item of items) if (!item.hidden) item.open = closed;
  });
  show();
})();
