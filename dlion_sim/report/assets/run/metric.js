/* The metric over time, bytes or cost, of all workers. */
report.view("metric", (body) => {
  const { time } = report;
  let data = null;
  let over = "time";
  const switches = report.element("div", {});
  body.append(switches);
  const figure = report.figure(body, 340);

  /** The horizontal axis: its title, its values, and its unit if it is time. */
  function along() {
    const { times, bytes, cost } = data.metric;
    if (over === "bytes") {
      const [size, unit] = report.byteUnit(bytes.at(-1) ?? 0);
      return { title: `${data.metric.traffic} (${unit})`, xs: bytes.map((each) => each / size) };
    }
    if (over === "cost") return { title: "Cost", xs: cost };
    const [size, unit] = report.timeUnit(data.end);
    return { title: `${data.clock} (${unit})`, xs: times.map((each) => each / size), size };
  }

  const toAxis = ({ xs, size }, at) => (size ? at / size : report.interpolated(data.metric.times, xs, at));
  const toTime = ({ xs, size }, at) => (size ? at * size : report.interpolated(xs, data.metric.times, at));

  function traces({ xs }) {
    const { mean, low, high, workers, names, name } = data.metric;
    const percent = data.metric.scale === 100 ? " %" : "";
    const found = [];
    if (names.length !== 1) {
      const edge = { x: xs, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      found.push({ ...edge, y: low, name: "minimum" });
      found.push({
        ...edge,
        y: high,
        name: "minimum to maximum",
        fill: "tonexty",
        fillcolor: report.faded("ink", 0.12),
        showlegend: !workers,
      });
    }
    (workers ?? []).forEach((packed, number) => {
      const line = { color: report.series(number), width: 1.2, dash: report.dash(number) };
      const label = report.label(names[number]);
      found.push({
        x: xs,
        y: report.numbers(packed),
        mode: "lines",
        name: label,
        line,
        hovertemplate: `%{y:.4g}${percent}<extra>%{fullData.name}</extra>`,
      });
    });
    const line = { color: report.colour(names.length === 1 ? "series-0" : "ink"), width: 2.5 };
    const label = names.length === 1 ? report.label(names[0]) : "mean of the workers";
    found.push({
      x: xs,
      y: mean,
      mode: xs.length > 60 ? "lines" : "lines+markers",
      marker: { size: 5 },
      name: label,
      line,
      hovertemplate: `%{y:.4g}${percent}<extra>${name}, %{fullData.name}</extra>`,
    });
    return found;
  }

  /** The range of the values shown, ends of lines included, with a margin. */
  function heights(begin, end) {
    const { times, mean } = data.metric;
    const known = times.map((_, place) => place).filter((place) => mean[place] !== null);
    const at = known.map((place) => times[place]);
    const values = [data.metric.low, data.metric.high].flatMap((all) => {
      const own = known.map((place) => all[place]);
      const inside = own.filter((_, number) => at[number] >= begin && at[number] <= end);
      return [...inside, report.interpolated(at, own, begin), report.interpolated(at, own, end)];
    });
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const room = 0.06 * (most - least || Math.abs(most) || 1);
    return [least - room, most + room];
  }

  function draw() {
    const { metric } = data;
    const [begin, end] = time.range();
    const axis = along();
    const range = [toAxis(axis, begin), toAxis(axis, end)];
    const key = `${over} ${begin} ${end}`;
    const target = metric.target === null ? [] : [metric.target * metric.scale];
    const layout = {
      xaxis: { title: { text: axis.title }, range, uirevision: key },
      yaxis: {
        title: { text: `${metric.on} ${metric.name}${metric.unit}` },
        fixedrange: true,
        range: heights(begin, end),
        uirevision: key,
      },
      shapes: target.map((y) => ({
        type: "line",
        xref: "paper",
        x0: 0,
        x1: 1,
        y0: y,
        y1: y,
        line: { color: report.colour("quiet"), width: 1, dash: "dash" },
      })),
    };
    const [first, last] = [metric.mean[0], metric.mean.at(-1)].map((mean) => report.number(mean));
    const what = `${metric.on} ${metric.name} over ${over}`;
    const label = `${what}: the workers' mean goes from ${first} to ${last}.`;
    figure.draw(traces(axis), layout, {
      label,
      columns: ["Time (s)", `${metric.traffic} (bytes)`, ...(metric.cost ? ["Cost"] : []), "Mean", "Minimum", "Maximum"],
      rows: () =>
        metric.times.map((at, n) => [
          String(report.number(at)),
          metric.bytes[n],
          ...(metric.cost ? [metric.cost[n]] : []),
          metric.mean[n],
          metric.low[n],
          metric.high[n],
        ]),
    });
    if (!figure.joined) join();
  }

  function join() {
    figure.joined = true;
    figure.plot.on("plotly_relayout", (change) => {
      const [low, high] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (low !== undefined) time.show([toTime(along(), low), toTime(along(), high)]);
    });
    figure.plot.on("plotly_doubleclick", () => time.show(null));
  }

  time.follow(() => data && draw());

  return (newest) => {
    const options = [["time", "Time"], ["bytes", newest.metric.bytes_name], ...(newest.metric.cost ? [["cost", "Cost"]] : [])];
    if (!data) {
      switches.append(
        report.choice("Over", options, (value) => {
          over = value;
          draw();
        }),
      );
    }
    data = newest;
    if (!data.metric.times.length) return false;
    draw();
    return true;
  };
});
