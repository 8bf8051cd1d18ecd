/* The metric of many runs over time, bytes or cost. */
report.view("curves", (body) => {
  const { groups } = report;
  const MOST_BANDS = 6;
  const over = groups.menu("Over", () => draw());
  body.append(over.made);
  const figure = report.figure(body, 420);
  let data = null;

  /** The points of some groups' lines, with gaps between lines. */
  function joined(members, lines) {
    const [x, y, name, id] = [[], [], [], []];
    for (const [group, number] of members) {
      const line = lines[number];
      x.push(...line.x, null);
      y.push(...line.mean, null);
      for (let place = 0; place <= line.x.length; place++) {
        name.push(report.label(group.name, 60));
        id.push(group.id);
      }
    }
    return { x, y, text: name, customdata: id, type: "scatter", mode: "lines" };
  }

  function bands(members, lines) {
    const [x, y] = [[], []];
    for (const [, number] of members) {
      const { x: at, low, high } = lines[number];
      x.push(...at, ...at.toReversed(), null);
      y.push(...high, ...low.toReversed(), null);
    }
    return { x, y, type: "scatter", mode: "none", fill: "toself", hoverinfo: "skip", showlegend: false };
  }

  function draw() {
    const curve = data.curves.find((each) => each.key === over.value());
    if (!curve) return false;
    const axis = groups.colouring(data);
    const [chosen, others] = groups.parted(data);
    const shown = chosen.filter(([, number]) => curve.groups[number].x.length);
    const hovered = `%{text}<br>%{y:.4~g} at %{x:.4~g} ${curve.unit}<extra></extra>`;
    const traces = [
      { ...joined(others, curve.groups), line: { width: 1, color: groups.faint(others.length) }, hoverinfo: "skip", showlegend: false },
    ];
    axis.values.forEach((value, place) => {
      const members = shown.filter(([, number]) => axis.places[number] === place);
      if (!members.length) return;
      const colour = groups.colour(axis, place);
      if (shown.length <= MOST_BANDS) traces.push({ ...bands(members, curve.groups), fillcolor: `${colour}30` });
      const line = { width: 2, color: colour, dash: axis.dashes[place] };
      traces.push({ ...joined(members, curve.groups), name: report.label(value), line, hovertemplate: hovered });
    });
    const log = curve.logarithmic ? report.scale.LOGARITHMIC : { rangemode: "tozero" };
    const layout = {
      xaxis: { title: { text: curve.unit ? `${curve.title} (${curve.unit})` : curve.title }, ...log },
      yaxis: { title: { text: report.label(data.metric, 60) }, rangemode: "tozero" },
      showlegend: axis.values.length > 1,
      uirevision: curve.key,
    };
    figure.draw(traces, layout, {
      label: `${data.metric} over ${curve.title.toLowerCase()}, a line for each of ${shown.length} groups of runs`,
      columns: ["Group", `${curve.title} at the end (${curve.unit || "cost"})`, `${data.metric} at the end`, "Minimum over seeds", "Maximum"],
      rows: () =>
        shown.map(([group, number]) => {
          const line = curve.groups[number];
          return [group.name, line.x.at(-1), line.mean.at(-1), line.low.at(-1), line.high.at(-1)];
        }),
    });
    groups.clicks(figure.plot);
    return true;
  }

  groups.follow(draw);
  return (newest) => {
    data = newest;
    over.fill(data.curves.map((curve) => [curve.key, curve.title]));
    return draw();
  };
});
