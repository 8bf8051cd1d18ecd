/* The time range of all views over time. */
report.time = (() => {
  const listeners = new Set();
  let whole = [0, 1];
  let shown = null;

  const range = () => shown ?? whole;

  /** Call `changed([begin, end])` (s) on each new range. */
  function follow(changed) {
    listeners.add(changed);
  }

  function notify() {
    for (const changed of listeners) changed(range());
  }

  /** Show [begin, end]; null shows the whole run. */
  function show(wanted) {
    const before = range();
    if (wanted === null) shown = null;
    else {
      const [begin, end] = [Math.max(whole[0], Math.min(...wanted)), Math.min(whole[1], Math.max(...wanted))];
      shown = end > begin && (begin > whole[0] || end < whole[1]) ? [begin, end] : null;
    }
    if (range()[0] !== before[0] || range()[1] !== before[1]) notify();
  }

  /** Set the run's duration; a view of the whole run grows with it. */
  function span(end) {
    whole = [0, Math.max(end, 1e-9)];
    show(shown);
  }

  /**
   * Link a plot whose horizontal axis `axis` is time in units of `unit()` seconds: zooming in it zooms all views, and it
   * follows their zoom. Views that redraw on each range need no link.
   */
  function link(plot, unit, axis = "xaxis") {
    let own = false;
    plot.on("plotly_relayout", (change) => {
      if (own) return;
      const low = change[`${axis}.range[0]`] ?? change[`${axis}.range`]?.[0];
      const high = change[`${axis}.range[1]`] ?? change[`${axis}.range`]?.[1];
      if (low !== undefined) show([low * unit(), high * unit()]);
    });
    plot.on("plotly_doubleclick", () => show(null));
    follow(([begin, end]) => {
      own = true;
      Plotly.relayout(plot, { [`${axis}.range`]: [begin / unit(), end / unit()] }).then(() => (own = false));
    });
  }

  return { range, follow, show, span, link, whole: () => whole };
})();
