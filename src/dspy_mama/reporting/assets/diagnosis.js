"use strict";
(() => {
  const list = document.getElementById("pairs");
  const controls = document.getElementById("controls");
  if (!list || !controls) return;
  const rows = Array.from(list.children);
  const field = (name) => controls.elements.namedItem(name);
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const matches = (row) => ["method", "stage", "right"].every((name) => !field(name).value || row.dataset[name] === field(name).value)
    && (!field("leaks").checked || row.dataset.leak === "0")
    && (!field("doubts").checked || row.dataset.doubt === "1")
    && texts.get(row).includes(field("text").value.trim().toLowerCase());
  const show = () => {
    let visible = 0;
    for (const row of rows) {
      row.hidden = !matches(row);
      visible += row.hidden ? 0 : 1;
    }
    document.getElementById("shown").textContent = `${visible} of ${rows.length} records shown`;
  };
  controls.hidden = false;
  controls.addEventListener("input", show);
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("reset", () => setTimeout(show));
  document.getElementById("open-all").addEventListener("click", () => {
    const closed = rows.some((row) => !row.hidden && !row.open);
    for (const row of rows) if (!row.hidden) row.open = closed;
  });
  show();
})();
