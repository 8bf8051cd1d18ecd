/* The table of results: a row for each group of seeds, sorted by any column, selected by a click. */
report.view("outcomes", (body) => {
  const { element, groups } = report;
  const head = element("tr");
  const rows = element("tbody");
  const table = element("table", { id: "outcomes-table" }, element("thead", {}, head), rows);
  body.append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" }, table));
  let data = null;
  let sorted = null;
  let isDescending = false;

  /** Columns: heading, whether cells are numbers, and functions of a group and its number for sort key and text. */
  function columns() {
    const ofAxes = data.axes.map((axis) => ({
      heading: axis.heading,
      key: (group, number) => axis.places[number],
      text: (group, number) => axis.values[axis.places[number]],
    }));
    const runs = { heading: "Runs", numeric: true, key: (group) => group.completed, text: (group) => group.runs, note: (group) => group.note };
    const measured = data.quantities.map((quantity) => ({
      heading: quantity.heading,
      numeric: true,
      key: (group) => group.outcome[quantity.key].value,
      text: (group) => group.outcome[quantity.key].text || "–",
    }));
    return [...ofAxes, runs, ...measured];
  }

  function inOrder() {
    const column = columns().find((each) => each.heading === sorted);
    const all = data.groups.map((group, number) => ({ group, number, key: column?.key(group, number) }));
    if (!column) return all;
    const sign = isDescending ? -1 : 1;
    const isUnknown = ({ key }) => key === null || key === undefined;
    return all.sort((a, b) => isUnknown(a) - isUnknown(b) || (isUnknown(a) ? 0 : sign * (a.key - b.key)));
  }

  function sortBy(heading) {
    isDescending = sorted === heading && !isDescending;
    sorted = heading;
    draw();
  }

  function heading(column) {
    const state = column.heading === sorted ? (isDescending ? "descending" : "ascending") : null;
    const button = element("button", { type: "button", class: "sort", "data-focus": `sort ${column.heading}` }, column.heading);
    button.addEventListener("click", () => sortBy(column.heading));
    return element("th", { scope: "col", "aria-sort": state, class: column.numeric ? "number" : null }, button);
  }

  function row({ group, number }) {
    const swatch = element("span", { class: "swatch" });
    const axis = groups.colouring(data);
    swatch.style.background = groups.colour(axis, axis.places[number]);
    const box = element("input", { type: "checkbox", "aria-label": `Select ${group.name}`, "data-focus": `row ${group.id}` });
    box.addEventListener("change", () => groups.toggle(group.id));
    const cells = columns().map((column) => {
      const note = column.note?.(group);
      return element(
        "td",
        { class: column.numeric ? "number" : null, dir: "auto" },
        column.text(group, number),
        note ? element("span", { class: "aside" }, ` ${note}`) : null,
      );
    });
    const made = element("tr", { "data-id": group.id, class: group.completed ? null : "open" }, element("td", {}, box, swatch), ...cells);
    made.addEventListener("click", (event) => {
      if (event.target !== box && !getSelection().toString()) groups.toggle(group.id);
    });
    return made;
  }

  function mark() {
    for (const made of rows.children) {
      const isChosen = groups.isChosen({ id: made.dataset.id });
      made.classList.toggle("chosen", isChosen);
      made.querySelector("input").checked = isChosen;
    }
  }

  function draw() {
    const focused = body.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    head.replaceChildren(element("th", { scope: "col" }, element("span", { class: "unseen" }, "Selected")), ...columns().map(heading));
    rows.replaceChildren(...inOrder().map(row));
    mark();
    const again = [...body.querySelectorAll("[data-focus]")].find((each) => each.dataset.focus === focused);
    if (focused) again?.focus();
  }

  groups.follow((source) => (source === "colours" ? draw() : mark()));
  return (newest) => {
    data = newest;
    draw();
    return data.groups.length > 0;
  };
});

/* The incomplete runs, with reasons. */
report.view("unfinished", (body) => (data) => {
  const rows = data.unfinished.map(({ run, status, why }) => [run, status, why]);
  body.replaceChildren(report.table("Incomplete runs", ["Run", "State", "Reason or progress"], rows));
  return rows.length > 0;
});
