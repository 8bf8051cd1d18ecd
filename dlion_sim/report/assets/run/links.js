/* Rate, utilization and N of Max-N of each link, as a heat map over time. */
report.view("links", (body) => {
  const { time } = report;
  const ROW = 15;
  const MOST = 800;
  const NAMED = 50;
  const switches = report.element("div", {});
  const note = report.element("p", { class: "quiet" });
  body.append(switches, note);
  const figure = report.figure(body, 300);
  let data = null;
  let show = "rate";

  /** The quantity shown: its name, unit, rows of values, and maximum. */
  function quantity() {
    const { links } = data;
    const values = report.numbers(links[show]);
    const columns = links.edges.length - 1;
    const [size, unit] =
      show === "rate"
        ? report.rateUnit(values.reduce((most, each) => Math.max(most, each), 0))
        : [show === "full" ? 0.01 : 1, "%"];
    const z = links.pairs.map((_, row) =>
      Array.from(values.subarray(row * columns, (row + 1) * columns), (each) =>
        Number.isNaN(each) ? null : each / size,
      ),
    );
    const name = { rate: "Rate", full: "Utilization of the fullest NIC or path", n_percent: "N of Max-N" }[show];
    return {
      z,
      name,
      unit,
      most: show === "rate" ? z.flat().reduce((most, each) => Math.max(most, each ?? 0), 1e-9) : 100,
    };
  }

  const name = (nodes, [from, to]) =>
    `${report.shortened(nodes[from].name, 18)} → ${report.shortened(nodes[to].name, 18)}`;

  /** A tick at each link, or of many at some. */
  function named(names) {
    const kept = names.map((_, place) => place).filter((place) => place % Math.ceil(names.length / NAMED) === 0);
    return { tickvals: kept, ticktext: kept.map((place) => report.label(names[place], 44)) };
  }

  function draw() {
    const { links } = data;
    const { z, name: what, unit, most } = quantity();
    const [size, time_unit] = report.timeUnit(data.end);
    const [begin, end] = time.range();
    const names = links.pairs.map((pair) => name(links.nodes, pair));
    const means = z
      .map((row) => row.filter((each) => each !== null))
      .map((row) => row.reduce((sum, each) => sum + each, 0) / row.length);
    const trace = {
      type: "heatmap",
      z,
      x: links.edges.map((each) => each / size),
      colorscale: "Cividis",
      zmin: 0,
      zmax: most,
      hovertemplate: `%{text}<br>to %{x:.4g} ${time_unit}: %{z:.3g} ${unit}<extra></extra>`,
      text: z.map((row, place) => row.map(() => report.label(names[place], 60))),
      ygap: names.length < 40 ? 1 : 0,
      colorbar: {
        title: { text: `${what} (${unit})`, side: "right" },
        thickness: 12,
        outlinewidth: 0,
        tickfont: { color: report.colour("quiet") },
      },
    };
    const layout = {
      height: Math.min(Math.max(190, ROW * names.length + 90), MOST),
      xaxis: {
        title: { text: `${data.clock} (${time_unit})` },
        range: [begin / size, end / size],
        uirevision: `${begin} ${end}`,
        showgrid: false,
      },
      yaxis: { autorange: "reversed", fixedrange: true, showgrid: false, ...named(names) },
    };
    figure.draw([trace], layout, {
      label: `${what} of ${names.length} links over time, in ${unit}.`,
      columns: ["Link", `${what}, mean over the run (${unit})`, `Maximum (${unit})`],
      rows: () => names.map((each, place) => [each, means[place], Math.max(...z[place])]),
    });
    const pairs =
      links.nodes.length && links.total > links.pairs.length + links.hidden
        ? `The ${links.total} links are grouped by pair of micro-clouds. `
        : "";
    const shown = `The ${links.pairs.length} rows with most traffic are shown, those between micro-clouds first`;
    note.textContent = pairs + (links.hidden ? `${shown}; ${links.hidden} are left out.` : "");
    note.hidden = !note.textContent;
  }

  return (newest) => {
    const isFirst = !data && newest.links;
    if (!newest.links) return false;
    data = newest;
    if (isFirst) {
      const { full, n_percent } = data.links;
      const options = [
        ["rate", "Rate"],
        ...(full ? [["full", "Utilization"]] : []),
        ...(n_percent ? [["n_percent", "N of Max-N"]] : []),
      ];
      switches.append(
        report.choice("Show", options, (value) => {
          show = value;
          draw();
        }),
      );
    }
    draw();
    if (isFirst) time.link(figure.plot, () => report.timeUnit(data.end)[0]);
    return true;
  };
});
