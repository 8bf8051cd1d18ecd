/* Parallel coordinates: a line for each group of runs across axes and results; boxes select. */
report.view("coordinates", (body) => {
  const { groups } = report;
  const MOST_TICKS = 12;
  const [LETTER, LINE, MOST_LETTERS, ROOM, SPACE] = [6.5, 16, 18, 0.25, 85]; // Pixels; ROOM, beside the outer axes, is a share of the space between axes.
  const figure = report.figure(body, 430, ["toImage"]);
  let data = null;
  let boxes = [];
  let isListening = false;

  const ofAxis = (axis) => {
    const last = axis.values.length - 1;
    const every = Math.ceil(axis.values.length / MOST_TICKS);
    const ticks = axis.values.flatMap((value, place) => (place % every ? [] : [[place / last, value]]));
    return { name: axis.heading, places: axis.places.map((place) => place / last), ticks };
  };

  const ofQuantity = (quantity) => {
    const values = data.groups.map((group) => {
      const { value, bound } = group.outcome[quantity.key];
      return bound === ">" ? null : value;
    });
    return { name: quantity.heading, ...report.scale.places(values, quantity.more) };
  };

  const dimensions = () => [...data.axes.filter((axis) => axis.values.length > 1).map(ofAxis), ...data.quantities.map(ofQuantity)];

  /** Whether a group's line goes through a box on each axis that has boxes. */
  function isWithin(number, drawn) {
    return drawn.every(({ places }, at) => {
      const here = boxes.filter(({ x0, x1 }) => Math.min(x0, x1) <= at && at <= Math.max(x0, x1));
      return !here.length || here.some(({ y0, y1 }) => Math.min(y0, y1) <= places[number] && places[number] <= Math.max(y0, y1));
    });
  }

  const corners = (all) => JSON.stringify(all.map(({ x0, x1, y0, y1 }) => [x0, x1, y0, y1]));

  function brushed() {
    const drawn = dimensions();
    const own = figure.plot.layout.selections ?? [];
    if (corners(own) === corners(boxes)) return; // Plotly also reports selections drawn by this script.
    boxes = own.filter(({ x0, x1 }) => drawn.some((_, at) => Math.min(x0, x1) <= at && at <= Math.max(x0, x1)));
    const within = boxes.length ? data.groups.filter((_, number) => isWithin(number, drawn)) : [];
    groups.choose(within.map((group) => group.id), "coordinates");
  }

  /** A heading in lines of at most so many letters. */
  function inLines(name, letters) {
    const lines = [];
    for (const word of name.split(" ")) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && longer.length <= letters) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.map((line) => report.label(line, letters));
  }

  function joined(members, drawn) {
    const [x, y, text, customdata] = [[], [], [], []];
    for (const [group, number] of members) {
      drawn.forEach(({ places }, at) => {
        x.push(at);
        y.push(places[number]);
      });
      x.push(null);
      y.push(null);
      for (let place = 0; place <= drawn.length; place++) {
        text.push(report.label(group.name, 60));
        customdata.push(group.id);
      }
    }
    return { x, y, text, customdata, type: "scatter", mode: "lines", hovertemplate: "%{text}<extra></extra>" };
  }

  function draw() {
    const drawn = dimensions();
    if (drawn.length < 2) return false;
    const axis = groups.colouring(data);
    const [all, none] = groups.parted(data);
    const [shown, others] = boxes.length && !groups.any() ? [none, all] : [all, none];
    const traces = [{ ...joined(others, drawn), line: { width: 1, color: groups.faint(others.length) }, showlegend: false }];
    axis.values.forEach((value, place) => {
      const members = shown.filter(([, number]) => axis.places[number] === place);
      const line = { width: 1.75, color: groups.colour(axis, place), dash: axis.dashes[place] };
      if (members.length) traces.push({ ...joined(members, drawn), name: report.label(value), line });
    });
    figure.plot.style.minWidth = `${SPACE * drawn.length}px`; // Narrower pages scroll.
    figure.plot.parentElement.style.overflowX = "auto";
    const lengths = drawn[0].ticks.map(([, text]) => Math.min(MOST_LETTERS, String(text).length));
    const space = (figure.plot.clientWidth - 40) / (drawn.length - 1 + 2 * ROOM);
    const most = Math.max(5, Math.min(MOST_LETTERS, Math.floor(space / LETTER) - 2));
    const left = Math.max(12, LETTER * Math.min(Math.max(...lengths), 1.5 * most) + 12 - ROOM * space);
    const headings = drawn.map(({ name }) => inLines(name, Math.min(26, Math.floor((24 + 2 * ROOM * space) / LETTER))));
    const note = { showarrow: false, xanchor: "right", xshift: -5, bgcolor: report.faded("raised", 0.75), borderpad: 1 };
    const layout = {
      xaxis: {
        side: "top",
        tickvals: drawn.map((_, at) => at),
        ticktext: headings.map((lines) => lines.join("<br>")),
        tickangle: 0,
        range: [-ROOM, drawn.length - 1 + ROOM],
        gridcolor: report.colour("axis"),
        linecolor: "transparent",
        fixedrange: true,
      },
      yaxis: { range: [-0.05, 1.05], visible: false, fixedrange: true },
      annotations: drawn.flatMap(({ ticks }, x) => ticks.map(([y, value]) => ({ ...note, x, y, text: report.label(value, x ? most : 1.5 * most) }))),
      margin: { l: left, r: 12, t: 10 + LINE * Math.max(2, ...headings.map((lines) => lines.length)), b: 12 },
      legend: { orientation: "h", y: -0.02, yanchor: "top", x: 0 },
      dragmode: "select",
      newselection: { line: { color: report.colour("accent"), dash: "solid", width: 1.5 } },
      selections: boxes,
    };
    figure.draw(traces, layout, {
      label: `${data.groups.length} groups of runs across ${drawn.map(({ name }) => name).join(", ")}`,
      columns: ["Group", ...data.quantities.map(({ heading }) => heading)],
      rows: () => shown.map(([group]) => [group.name, ...data.quantities.map(({ key }) => group.outcome[key].text || "–")]),
    });
    if (isListening) return true;
    isListening = true;
    figure.plot.on("plotly_selected", brushed);
    figure.plot.on("plotly_deselect", brushed);
    groups.clicks(figure.plot);
    return true;
  }

  groups.follow((source) => {
    if (source === null) boxes = [];
    draw();
  });
  return (newest) => {
    data = newest;
    return draw();
  };
});
