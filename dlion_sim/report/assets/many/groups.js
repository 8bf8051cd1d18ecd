/* Shared by all views of many runs: the selected groups, and their colours. */
report.groups = (() => {
  const { element } = report;
  const chosen = new Set();
  const listeners = [];
  const listening = new WeakSet();
  let axis = null;

  /** Call `changed(source)` on each new selection; `source` is the view that made it, or null. */
  function follow(changed) {
    listeners.push(changed);
  }

  function notify(source) {
    for (const changed of listeners) changed(source);
  }

  /** Select these groups, by id; `source` is the calling view. */
  function choose(ids, source = null) {
    chosen.clear();
    for (const id of ids) chosen.add(id);
    notify(source);
  }

  function toggle(id) {
    if (!chosen.delete(id)) chosen.add(id);
    notify(null);
  }

  const isChosen = (group) => chosen.has(group.id);

  /** All groups as pairs of group and number: the selected ones, or all without a selection, and the others. */
  function parted(data) {
    const all = data.groups.map((group, number) => [group, number]);
    const some = all.filter(([group]) => isChosen(group));
    return some.length ? [some, all.filter(([group]) => !isChosen(group))] : [all, []];
  }

  /** The colour of unselected lines: the more there are, the fainter. */
  const faint = (count) => report.faded("quiet", Math.max(0.02, Math.min(0.25, 8 / count)));

  /** Toggle the selection of a group by clicks on its point or line in a plot. */
  function clicks(plot) {
    if (listening.has(plot)) return;
    listening.add(plot);
    plot.on("plotly_click", ({ points }) => {
      if (points[0].customdata) toggle(points[0].customdata);
    });
  }

  /** The axis for colours: chosen by the reader, or the default. */
  const colouring = (data) => data.axes.find((each) => each.heading === axis) ?? data.colouring;

  /** The colour of a value of an axis, by number. */
  const colour = (own, value) => (report.isDark() ? own.dark : own.colours)[value];

  /** Choose the axis for colours. */
  function colourBy(heading) {
    axis = heading;
    notify("colours");
  }

  /** A labelled menu; `fill(options)`, of [value, label] pairs, keeps the reader's choice. */
  function menu(label, changed) {
    const select = element("select");
    let picked = null;
    select.addEventListener("change", () => {
      picked = select.value;
      changed(picked);
    });
    const made = element("label", { class: "menu" }, element("span", {}, label), select);
    let filled = "";
    function fill(options) {
      made.hidden = options.length < 2;
      if (filled === JSON.stringify(options)) return;
      filled = JSON.stringify(options);
      select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
      if (options.some(([value]) => value === picked)) select.value = picked;
    }
    return { made, fill, value: () => select.value };
  }

  return { follow, choose, toggle, isChosen, any: () => chosen.size > 0, parted, faint, clicks, colouring, colour, colourBy, menu };
})();

/* The summary: counts of runs, colours, and the selection. */
report.view("overview", (body) => {
  const { element, groups } = report;
  const counts = element("p", { class: "counts" });
  const colours = groups.menu("Colour by", groups.colourBy);
  const clear = element("button", { type: "button", id: "clear" }, "Clear selection");
  const status = element("span", { role: "status" });
  body.append(counts, element("div", { class: "controls" }, colours.made, clear, status));
  clear.addEventListener("click", () => groups.choose([]));
  let data = null;

  function update() {
    const many = data.groups.filter(groups.isChosen).length;
    clear.disabled = !groups.any();
    status.textContent = many ? `${many} of ${data.groups.length} rows selected` : "";
  }

  groups.follow(update);
  return (newest) => {
    data = newest;
    counts.textContent = [data.counts || "no run yet", data.target].filter(Boolean).join("; ");
    const order = [data.colouring, ...data.axes.toReversed()].filter(Boolean).map((axis) => axis.heading);
    colours.fill([...new Set(order)].map((heading) => [heading, heading]));
    update();
  };
});
