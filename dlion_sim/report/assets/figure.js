/* A plot with a table of its data. */
(() => {
  const CONFIG = {
    responsive: true,
    displaylogo: false,
    doubleClick: false,
  };

  const MOST_NAMES = 40;
  const ON_PAPER = 690;

  function axis(own, font) {
    const quiet = { gridcolor: report.colour("grid"), zeroline: false, linecolor: report.colour("axis") };
    const title = own.title ? { title: { font: { ...font, size: 13 }, standoff: 12, ...own.title } } : {};
    return {
      automargin: true,
      tickfont: font,
      ticks: "outside",
      ticklen: 4,
      tickcolor: "transparent",
      ...quiet,
      ...own,
      ...title,
    };
  }

  /** A layout in the page's colours, with own parts. */
  function themed(own) {
    const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: report.colour("quiet") };
    const layout = {
      margin: { l: 12, r: 12, t: 30, b: 12, pad: 2 },
      hovermode: "closest",
      dragmode: "zoom",
      legend: { orientation: "h", yanchor: "bottom", y: 1.02, x: 0, traceorder: "normal", font },
      modebar: { bgcolor: "transparent", color: report.colour("axis"), activecolor: report.colour("accent") },
      ...own,
      font,
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      uirevision: own.uirevision ?? "kept",
      hoverlabel: {
        bgcolor: report.colour("raised"),
        bordercolor: report.colour("axis"),
        font: { ...font, color: report.colour("ink") },
      },
    };
    for (const name of Object.keys(own)) if (/^[xy]axis\d*$/.test(name)) layout[name] = axis(own[name], font);
    return layout;
  }

  /** The ticks of an axis of workers: their names, or of many, the micro-cloud at its first worker. */
  report.rows = (names) => {
    const places = names.map((_, place) => place);
    if (names.length <= MOST_NAMES) return { tickvals: places, ticktext: names.map((name) => report.label(name)) };
    const clouds = names.map((name) => name.replace(/\/[^/]*$/, ""));
    const first = places.filter((place) => place === 0 || clouds[place] !== clouds[place - 1]);
    const kept = first.filter((_, number) => number % Math.ceil(first.length / MOST_NAMES) === 0);
    return { tickvals: kept, ticktext: kept.map((place) => report.label(clouds[place])) };
  };

  /**
   * An empty plot at the end of `parent`, `height` pixels high. `draw(traces, layout, table)` fills it: `table` has a
   * `label`, its description, and `columns` and `rows`. `buttons` are Plotly's.
   */
  report.figure = (parent, height, buttons = ["toImage", "zoom2d", "pan2d"]) => {
    const plot = report.element("div", { class: "plot", role: "img" });
    const details = report.element("details", { class: "as-table" }, report.element("summary", {}, "Show as table"));
    parent.append(report.element("figure", {}, plot, details));
    let table = null;
    let stale = true;

    function tabulate() {
      if (!details.open || !stale) return;
      stale = false;
      details.querySelector(".scroll")?.remove();
      details.append(report.table(table.label, table.columns, table.rows()));
    }

    details.addEventListener("toggle", tabulate);

    function draw(traces, layout, newest) {
      table = newest;
      stale = true;
      plot.style.height = `${layout.height ?? height}px`;
      plot.setAttribute("aria-label", table.label);
      Plotly.react(plot, traces, themed({ ...layout, height: layout.height ?? height }), { ...CONFIG, modeBarButtons: [buttons] });
      tabulate();
    }

    return { plot, draw };
  };

  // Plots adapt to the window's width, not to that of paper.
  const every = (change) =>
    document.querySelectorAll(".js-plotly-plot").forEach((plot) => Plotly.relayout(plot, change));
  addEventListener("beforeprint", () => every({ autosize: false, width: ON_PAPER }));
  addEventListener("afterprint", () => every({ autosize: true, width: undefined }));
})();
