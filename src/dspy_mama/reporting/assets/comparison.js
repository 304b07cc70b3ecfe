"use strict";
(() => {
  const list = document.getElementById("pairs");
  const controls = document.getElementById("controls");
  if (!list || !controls || !list.children.length) return;
  const pairs = Array.from(list.children);
  const field = (name) => controls.elements.namedItem(name);
  const count = document.getElementById("shown");
  const words = (text) => text.split(" ").filter(Boolean);
  const texts = new Map(pairs.map((pair) => [pair, pair.textContent.toLowerCase()]));
  const matches = (pair) => {
    const domain = field("domain").value;
    const differs = words(pair.dataset.differs);
    const domains = domain ? [domain] : differs;
    const wrong = words(pair.dataset.wrong);
    const right = words(pair.dataset.right);
    const errs = field("wrong").value;
    const hits = field("right").value;
    return (!domain || differs.includes(domain))
      && domains.some((name) => (!errs || wrong.includes(`${name}:${errs}`)) && (!hits || right.includes(`${name}:${hits}`)))
      && texts.get(pair).includes(field("text").value.trim().toLowerCase());
  };
  const orders = {
    order: (pair) => Number(pair.dataset.order),
    errors: (pair) => -words(pair.dataset.wrong).length,
    differs: (pair) => -words(pair.dataset.differs).length,
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
