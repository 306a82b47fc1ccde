// Zooms the timelines of a page: `figure.timeline` holds the picture, its `data-timeline` the steps.
// Draws what is in view into the picture's groups, with the same classes as report/timeline.py.
for (const figure of document.querySelectorAll("figure.timeline[data-timeline^='{']")) {
  const data = JSON.parse(figure.dataset.timeline);
  const svg = figure.querySelector("svg");
  const group = (name) => svg.querySelector("g." + name);
  const still = ["steps", "arrows", "ticks"].map((name) => [group(name), group(name).innerHTML]);
  let from = 0, span = data.total;  // tenths of cycles in view

  for (const lane of data.lanes) {  // differences become places
    let at = 0;
    for (const step of lane.steps) {
      step[1] += at;
      at = step[1] + step[2];
    }
    lane.known = at;  // behind it there are columns only
  }

  const make = (name, parent, attributes, title) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (title) make("title", node, {}).textContent = title;
    return parent.appendChild(node);
  };
  const place = (time) => data.left + (time - from) / span * data.width;
  const inside = (x) => Math.min(Math.max(x, data.left), data.left + data.width);
  const short = (value) => String(Number(value.toPrecision(4)));

  const block = (parent, kind, start, end, y, height, title) => {
    const x = inside(place(start)), width = inside(place(end)) - x;
    if (place(end) < data.left || x >= data.left + data.width) return;
    make("rect", parent, {class: "t-" + data.kinds[kind], x, y, width: Math.max(width, 0.4), height}, title);
  };

  const drawSteps = (lane) => {
    const pixel = span / data.width;
    let last = null;  // steps that are closer together than a pixel are one
    const flush = () => {
      if (!last) return;
      const [kind, start, end, title] = last, high = kind < data.waits ? data.lane : 0.4 * data.lane;
      const words = data.titles[title] + ": " + short((end - start) / data.us) + " us";
      block(group("steps"), kind, start, end, lane.y + (data.lane - high) / 2, high, words);
      last = null;
    };
    for (const [kind, start, length, title] of lane.steps) {
      if (start + length < from || start > from + span) continue;
      if (last && last[0] === kind && start - last[2] < pixel && length < pixel) {
        last[2] = start + length;
        continue;
      }
      flush();
      last = [kind, start, start + length, title];
    }
    flush();
  };

  const drawColumns = (lane) => {
    const count = Math.max(...lane.columns.map((row) => row.length), 0), wide = data.total / count;
    for (let at = 0; at < count; at++) {
      if ((at + 1) * wide <= Math.max(lane.known, from) || at * wide > from + span) continue;
      let bottom = lane.y + data.lane;
      lane.columns.forEach((row, kind) => {
        const high = Math.min((row[at] || 0) / 100 * data.lane, bottom - lane.y);
        if (high <= 0) return;
        bottom -= high;
        block(group("steps"), kind, Math.max(at * wide, lane.known), (at + 1) * wide, bottom, high);
      });
    }
  };

  const drawArrows = () => {
    for (const [wait, start, end, above, below] of data.arrows) {
      if (wait < data.seen * span || end < from || start > from + span) continue;
      const down = below > above, tip = down ? -5 : 5;
      const first = above + (down ? data.lane : 0), last = below + (down ? 0 : data.lane);
      const path = `M${inside(place(start))} ${first}L${inside(place(end))} ${last}`;
      make("path", group("arrows"), {class: "arrow", d: path + `m-3 ${tip}l3 ${-tip}l3 ${tip}`});
    }
  };

  const drawTicks = () => {
    const total = span / data.us, power = 10 ** Math.floor(Math.log10(total / 8));
    const step = power * [1, 2, 5, 10].find((unit) => total / (power * unit) <= 8);
    for (let at = Math.ceil(from / data.us / step); at * step * data.us <= from + span; at++) {
      const x = place(at * step * data.us);
      make("line", group("ticks"), {class: "grid", x1: x, x2: x, y1: data.top, y2: data.bottom});
      const label = {class: "dim", x, y: data.bottom + 14, "text-anchor": "middle"};
      make("text", group("ticks"), label).textContent = short(at * step) + " us";
    }
  };

  const show = () => {
    span = Math.min(Math.max(span, 10), data.total);
    from = Math.min(Math.max(from, 0), data.total - span);
    if (span === data.total) {
      for (const [node, markup] of still) node.innerHTML = markup;
      return;
    }
    for (const [node] of still) node.replaceChildren();
    for (const lane of data.lanes) {
      drawSteps(lane);
      drawColumns(lane);
    }
    drawArrows();
    drawTicks();
  };
  const zoom = (factor, center = 0.5) => {
    const before = span;
    span = Math.min(Math.max(span * factor, 10), data.total);
    from += (before - span) * center;
    show();
  };
  const move = (share) => { from += share * span; show(); };
  const whole = () => { span = data.total; show(); };

  const bar = document.createElement("div");
  bar.className = "tools";
  for (const [label, title, act] of [
    ["+", "zoom in", () => zoom(0.5)], ["−", "zoom out", () => zoom(2)],
    ["←", "earlier", () => move(-0.25)], ["→", "later", () => move(0.25)],
    ["all", "the whole kernel", whole],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.title = title;
    button.setAttribute("aria-label", title);
    button.onclick = act;
    bar.append(button);
  }
  const hint = document.createElement("span");
  hint.textContent = "drag to move, double click or ctrl and wheel to zoom";
  bar.append(hint);
  figure.prepend(bar);

  const center = (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    return Math.min(Math.max((x - data.left) / data.width, 0), 1);
  };
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;  // the page scrolls
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, center(event));
  }, {passive: false});
  svg.addEventListener("dblclick", (event) => zoom(0.4, center(event)));
  let held = null;
  svg.addEventListener("pointerdown", (event) => { held = center(event); });
  svg.addEventListener("pointermove", (event) => {
    if (held === null || !event.buttons || event.pointerType === "touch") return;  // a finger scrolls
    move(held - center(event));
    held = center(event);
  });
  svg.addEventListener("pointerup", () => { held = null; });
}
