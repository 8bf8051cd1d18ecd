/* What all views of many runs share: which groups of them are selected, and in what colours they are drawn. */
report.groups = (() => {
  const { element } = report;
  const chosen = new Set();
  const listeners = [];
  const listening = new WeakSet();
  let axis = null;

  /** Hear of each new selection: `changed(source)`, where the view that made it may say so. */
  function follow(changed) {
    listeners.push(changed);
  }

  function tell(source) {
    for (const changed of listeners) changed(source);
  }

  /** Select just these groups, by id; `source` is the view that asks. */
  function choose(ids, source = null) {
    chosen.clear();
    for (const id of ids) chosen.add(id);
    tell(source);
  }

  function toggle(id) {
    if (!chosen.delete(id)) chosen.add(id);
    tell(null);
  }

  const isChosen = (group) => chosen.has(group.id);

  /** All groups as pairs of group and number: those to be looked at, which are the selected or else all, and the others. */
  function parted(data) {
    const all = data.groups.map((group, number) => [group, number]);
    const some = all.filter(([group]) => isChosen(group));
    return some.length ? [some, all.filter(([group]) => !isChosen(group))] : [all, []];
  }

  /** The colour of lines of others: the more there are, the fainter. */
  const faint = (count) => report.faded("quiet", Math.max(0.02, Math.min(0.25, 8 / count)));

  /** From now on, have a click on a point, or a line, of a plot select its group, or let go of it. */
  function clicks(plot) {
    if (listening.has(plot)) return;
    listening.add(plot);
    plot.on("plotly_click", ({ points }) => {
      if (points[0].customdata) toggle(points[0].customdata);
    });
  }

  /** The axis by whose values groups are coloured, or several together until a reader chooses one. */
  const colouring = (data) => data.axes.find((each) => each.heading === axis) ?? data.colouring;

  /** The colour of a value of an axis, by number. */
  const colour = (own, value) => (report.isDark() ? own.dark : own.colours)[value];

  /** Choose by which axis to colour. */
  function colourBy(heading) {
    axis = heading;
    tell("colours");
  }

  /** A labelled list to choose from; `fill(options)`, of [value, label] pairs, keeps what a reader has chosen. */
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

/* The head of the page: how many runs there are, colours, and the selection. */
report.view("overview", (body) => {
  const { element, groups } = report;
  const counts = element("p", { class: "counts" });
  const colours = groups.menu("Colour by", groups.colourBy);
  const clear = element("button", { type: "button", id: "clear" }, "Clear the selection");
  const told = element("span", { role: "status" });
  body.append(counts, element("div", { class: "controls" }, colours.made, clear, told));
  clear.addEventListener("click", () => groups.choose([]));
  let data = null;

  function tell() {
    const many = data.groups.filter(groups.isChosen).length;
    clear.disabled = !groups.any();
    told.textContent = many ? `${many} of ${data.groups.length} rows selected` : "";
  }

  groups.follow(tell);
  return (newest) => {
    data = newest;
    counts.textContent = [data.counts || "no run yet", data.target].filter(Boolean).join("; ");
    const order = [data.colouring, ...data.axes.toReversed()].filter(Boolean).map((axis) => axis.heading);
    colours.fill([...new Set(order)].map((heading) => [heading, heading]));
    tell();
  };
});
