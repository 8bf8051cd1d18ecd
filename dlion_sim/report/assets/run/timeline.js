/* Timelines of workers, redrawn at the width of the plot for every time range. */
report.view("timeline", (body) => {
  const { element, time } = report;
  const [WAIT, COMPUTE] = [0, 1];
  const COLOURS = ["series-4", "series-0", "series-2", "series-3", "series-1"];
  const ROW = 24;
  const LEAST = 1e-6;
  const legend = element("p", { class: "legend" });
  const readout = element("p", { class: "readout quiet" }, "Point at a bar for details.");
  body.append(legend);
  const figure = report.figure(body, 200);
  figure.plot.after(readout);
  let data = null;
  let pieces = null;

  /** The share of each kind in each of `columns` cells of a worker's row, kind by kind. */
  function cells(worker, begin, end, columns) {
    const { first, ticks, seconds, kinds } = data.timeline;
    const sums = new Float64Array(columns * kinds.length);
    const scale = columns / (end - begin);
    const perTick = seconds / ticks;
    for (let piece = first[worker]; piece < first[worker + 1]; piece += 1) {
      const from = Math.max(0, (pieces.begin[piece] * perTick - begin) * scale);
      const to = Math.min(columns, (pieces.end[piece] * perTick - begin) * scale);
      const kind = pieces.kind[piece];
      const computing = pieces.computing[piece] / 200;
      for (let cell = Math.floor(from); cell < to; cell += 1) {
        const width = Math.min(to, cell + 1) - Math.max(from, cell);
        if (kind > COMPUTE) sums[kind * columns + cell] += width;
        else {
          sums[COMPUTE * columns + cell] += width * computing;
          sums[WAIT * columns + cell] += width * (1 - computing);
        }
      }
    }
    return sums;
  }

  /** The values of a worker's row: the share of computing from 0 to 1, or another kind that takes more, from 2 on. */
  function row(worker, begin, end, columns) {
    const sums = cells(worker, begin, end, columns);
    const drawn = new Float32Array(columns);
    for (let cell = 0; cell < columns; cell += 1) {
      const both = sums[WAIT * columns + cell] + sums[COMPUTE * columns + cell];
      let most = both;
      drawn[cell] = both < LEAST ? NaN : sums[COMPUTE * columns + cell] / both;
      for (let other = COMPUTE + 1; other < data.timeline.kinds.length; other += 1) {
        if (sums[other * columns + cell] > Math.max(most, LEAST)) {
          most = sums[other * columns + cell];
          drawn[cell] = other;
        }
      }
    }
    return drawn;
  }

  /** The colour scale: from 0 to 1 a blend of waiting and computing, then a colour for each other kind. */
  function scale() {
    const colours = COLOURS.map(report.colour);
    const most = COLOURS.length - 1;
    // Via grey, as the blend of orange and blue is green, another kind's colour.
    const steps = [
      [0, colours[WAIT]],
      [0.5 / most, report.colour("axis")],
      [1 / most, colours[COMPUTE]],
    ];
    for (let kind = 2; kind <= most; kind += 1)
      steps.push([(kind - 0.5) / most, colours[kind]], [Math.min(1, (kind + 0.5) / most), colours[kind]]);
    steps.splice(3, 0, [1.5 / most, colours[COMPUTE]]);
    return steps;
  }

  function draw() {
    const { workers, kinds, spent, waits, merged } = data.timeline;
    const [begin, end] = time.range();
    const [size, unit] = report.timeUnit(data.end);
    const columns = Math.max(100, Math.round(figure.plot.clientWidth) - 120);
    const z = workers.map((_, worker) => row(worker, begin, end, columns));
    const step = (end - begin) / columns / size;
    const key = `${begin} ${end}`;
    const trace = {
      type: "heatmap",
      z,
      x0: begin / size + step / 2,
      dx: step,
      y0: 0,
      dy: 1,
      zmin: 0,
      zmax: COLOURS.length - 1,
      colorscale: scale(),
      showscale: false,
      hoverinfo: "none",
      ygap: workers.length <= 40 ? 3 : 0,
    };
    const layout = {
      height: Math.min(Math.max(ROW * workers.length, 60), 620) + 60,
      xaxis: {
        title: { text: `${data.clock} (${unit})` },
        range: [begin / size, end / size],
        uirevision: key,
        showgrid: false,
      },
      yaxis: { autorange: "reversed", fixedrange: true, showgrid: false, ...report.rows(workers) },
    };
    const seconds = spent.map(report.numbers);
    figure.draw([trace], layout, {
      label: `Timelines of ${workers.length} workers: ${kinds.join(", ")}. ${shares(seconds)}`,
      columns: ["Worker", ...kinds.map((kind) => `${kind} (s)`), "Waited most for"],
      rows: () => workers.map((name, worker) => [name, ...seconds[worker], waits[worker]]),
    });
    legend.replaceChildren(
      ...kinds.map((kind, number) => swatch(kind, number, seconds)).filter(Boolean),
      grain(merged),
    );
  }

  function shares(seconds) {
    const own = seconds.map((each) => each[COMPUTE] / each.reduce((sum, one) => sum + one, 1e-12));
    const [least, most] = [Math.min(...own), Math.max(...own)].map((share) => report.number(100 * share, 2));
    return `They compute ${least} to ${most} % of their time.`;
  }

  function swatch(kind, number, seconds) {
    if (number > COMPUTE && !seconds.some((own) => own[number] > 0)) return null;
    return element(
      "span",
      {},
      element("i", { style: `background: var(--${COLOURS[number]})`, "aria-hidden": "true" }),
      kind,
    );
  }

  const grain = (merged) =>
    element(
      "span",
      { class: "quiet" },
      `Spans shorter than a pixel are blended; those shorter than ${report.seconds(merged)} are merged.`,
    );

  /** The piece of a worker at a time (s) as text. */
  function piece(worker, at) {
    const { first, ticks: all, seconds, kinds, everyone, workers } = data.timeline;
    const tick = (at / seconds) * all;
    for (let place = first[worker]; place < first[worker + 1]; place += 1) {
      if (pieces.begin[place] > tick) break;
      if (pieces.end[place] < tick) continue;
      const [from, to] = [pieces.begin[place], pieces.end[place]].map((each) => report.seconds((each / all) * seconds));
      const share = pieces.computing[place] / 2;
      const isMixed = pieces.kind[place] <= COMPUTE && share > 0 && share < 100;
      const what = isMixed
        ? `computing ${report.number(share, 2)} % of the time, else waiting`
        : kinds[pieces.kind[place]];
      const peer = pieces.peer[place] >= 0 ? `, for ${report.shortened(everyone[pieces.peer[place]])}` : "";
      return `${report.shortened(workers[worker])}, ${from} to ${to}: ${what}${peer}`;
    }
    return "";
  }

  function join() {
    figure.plot.on("plotly_hover", ({ points: [{ x, y }] }) => {
      readout.textContent = piece(y, x * report.timeUnit(data.end)[0]);
    });
    time.link(figure.plot, () => report.timeUnit(data.end)[0]);
  }

  time.follow(() => data && draw());

  return (newest) => {
    const isFirst = !data;
    data = newest;
    if (!data.timeline.workers.length) return false;
    const { begin, end, kind, peer, computing } = data.timeline;
    pieces = Object.fromEntries(
      Object.entries({ begin, end, kind, peer, computing }).map(([name, each]) => [name, report.numbers(each)]),
    );
    draw();
    if (isFirst) join();
    return true;
  };
});
