// Filters and sorts the tables of class "sorts": a row stays where it holds every word of the field,
// and a click on a head sorts by its column. Numbers sort as numbers, dashes stand last.
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const input = document.createElement("input");
  const count = document.createElement("output");
  const label = document.createElement("label");
  const bar = document.createElement("div");
  input.type = "search";
  input.placeholder = table.dataset.hint;
  label.append("Filter ", input);
  bar.className = "tools";
  bar.append(label, count);
  table.closest(".scroll").before(bar);

  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, at) => {
      row.hidden = !words.every((word) => texts[at].includes(word));
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${rows.length}`;
  };
  input.addEventListener("input", filter);
  filter();

  const order = new Intl.Collator("en", {numeric: true, sensitivity: "base"});
  const value = (row, column) => row.cells[column].textContent.trim();
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const numbers = head.classList.contains("n");
    button.onclick = () => {
      // what is largest is looked for first among numbers
      const first = numbers ? "descending" : "ascending";
      const other = numbers ? "ascending" : "descending";
      const way = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way);
      const sign = way === "ascending" ? 1 : -1;
      const keyed = rows.map((row) => [
        numbers ? parseFloat(value(row, column).replace(/,/g, "")) : value(row, column), row,
      ]);
      keyed.sort(([a], [b]) => {
        if (!numbers) return sign * order.compare(a, b);
        return Number.isNaN(a) - Number.isNaN(b) || sign * (a - b) || 0;
      });
      body.append(...keyed.map(([, row]) => row));
    };
  });
}
