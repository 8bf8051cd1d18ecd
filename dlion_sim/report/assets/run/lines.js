/* Quantities of iterations over time, a plot for each. */
report.view("lines", (body) => {
  const { time, element } = report;
  const figures = new Map();
  let data = null;

  function figureOf(name) {
    if (!figures.has(name)) {
      body.append(element("h3", {}, name));
      figures.set(name, report.figure(body, 230));
    }
    return figures.get(name);
  }

  function traces({ name, place, step, low, high, times, values }, size) {
    const xs = report.numbers(times).map((each) => each / size);
    const line = {
      color: report.series(place),
      width: low ? 1.8 : 1.2,
      dash: report.dash(place),
      shape: low ? "linear" : step,
    };
    const label = report.label(name);
    const own = {
      x: xs,
      y: report.numbers(values),
      mode: "lines",
      name: label,
      legendgroup: label,
      line,
      hovertemplate: "%{y:.4g}<extra>%{fullData.name}</extra>",
    };
    if (!low) return [own];
    const edge = { x: xs, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false, legendgroup: label };
    return [
      { ...edge, y: report.numbers(low) },
      { ...edge, y: report.numbers(high), fill: "tonexty", fillcolor: report.faded(`series-${place % 8}`, 0.18) },
      own,
    ];
  }

  function row({ name, values, low, high }) {
    const numbers = report.numbers(values);
    const greatest = (packed) => report.numbers(packed).reduce((most, each) => Math.max(most, each), -Infinity);
    const least = (packed) => report.numbers(packed).reduce((most, each) => Math.min(most, each), Infinity);
    return [name, numbers[0], numbers.at(-1), least(low ?? values), greatest(high ?? values)];
  }

  return (newest) => {
    data = newest;
    const [size, unit] = report.timeUnit(data.end);
    const [begin, end] = time.range();
    for (const { name, unit: of, lines } of data.lines) {
      const isNew = !figures.has(name);
      const figure = figureOf(name);
      const layout = {
        xaxis: {
          title: { text: `${data.clock} (${unit})` },
          range: [begin / size, end / size],
          uirevision: `${begin} ${end}`,
        },
        yaxis: { title: { text: of }, fixedrange: true, rangemode: "tozero" },
        showlegend: true,
      };
      figure.draw(
        lines.flatMap((line) => traces(line, size)),
        layout,
        {
          label: `${name} over time, in ${of}, of ${lines.map((line) => report.shortened(line.name)).join(", ")}.`,
          columns: ["Line", "First", "Last", "Minimum", "Maximum"],
          rows: () => lines.map(row),
        },
      );
      if (isNew) time.link(figure.plot, () => report.timeUnit(data.end)[0]);
    }
    return data.lines.length > 0;
  };
});
