/* The topology: rates and utilization of links in the time range. */
report.view("map", (body) => {
  const { time } = report;
  const BEND = 0.12;
  const POINTS = 12;
  const NAMED = 40;
  const figure = report.figure(body, 480);
  let data = null;

  /** Each node's place on a circle, with gaps between clouds. */
  function places(nodes) {
    const gaps = nodes.map((node, place) => (place && node.cloud !== nodes[place - 1].cloud ? 0.7 : 0));
    const closing = nodes.length > 1 && nodes.at(-1).cloud !== nodes[0].cloud ? 0.7 : 0;
    const all = nodes.length + gaps.reduce((sum, gap) => sum + gap, closing);
    let at = 0;
    return nodes.map((_, place) => {
      at += (place ? 1 : 0) + gaps[place];
      const angle = (2 * Math.PI * at) / all - Math.PI / 2;
      return [Math.sin(angle), Math.cos(angle)];
    });
  }

  /** A curve from one place to another, bent to its left to separate both directions. */
  function curve([ax, ay], [bx, by]) {
    const [mx, my] = [(ax + bx) / 2 - BEND * (by - ay), (ay + by) / 2 + BEND * (bx - ax)];
    return Array.from({ length: POINTS + 1 }, (_, step) => {
      const part = 0.06 + (0.88 * step) / POINTS;
      const [a, m, b] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
      return [a * ax + m * mx + b * bx, a * ay + m * my + b * by];
    });
  }

  /** The mean of each row of a table over the time range, weighted by the overlap with intervals. */
  function means(packed, rows) {
    const { edges } = data.links;
    const [begin, end] = time.range();
    const values = report.numbers(packed);
    const columns = edges.length - 1;
    const weights = Array.from({ length: columns }, (_, n) =>
      Math.max(0, Math.min(end, edges[n + 1]) - Math.max(begin, edges[n])),
    );
    return Array.from({ length: rows }, (_, row) => {
      let [sum, weight] = [0, 0];
      for (let n = 0; n < columns; n += 1) {
        const value = values[row * columns + n];
        if (weights[n] > 0 && !Number.isNaN(value)) [sum, weight] = [sum + weights[n] * value, weight + weights[n]];
      }
      return weight ? sum / weight : 0;
    });
  }

  /** The colour of a value from 0 to 1, in five steps. */
  function shade(part) {
    const steps = ["axis", "series-5", "series-0", "series-4", "series-1"];
    return report.colour(steps[Math.min(steps.length - 1, Math.max(0, Math.floor(part * steps.length)))]);
  }

  function draw() {
    const { nodes, pairs, rate, full } = data.links;
    const rates = means(rate, pairs.length);
    const fullness = full ? means(full, pairs.length) : null;
    const most = Math.max(...rates, 1e-9);
    const [size, unit] = report.rateUnit(most);
    const at = places(nodes);
    const traces = pairs.map(([from, to], place) => {
      const points = curve(at[from], at[to]);
      const part = fullness ? fullness[place] : rates[place] / most;
      const link = `${report.label(nodes[from].name)} → ${report.label(nodes[to].name)}`;
      const how = fullness ? `, utilization ${report.number(100 * fullness[place], 3)} %` : "";
      const text = `${link}<br>${report.number(rates[place] / size, 3)} ${unit}${how}`;
      return {
        x: points.map(([x]) => x),
        y: points.map(([, y]) => y),
        mode: "lines",
        line: { color: shade(part), width: 1 + (5 * rates[place]) / most, shape: "spline" },
        text,
        hoverinfo: "text",
        showlegend: false,
        meta: { full: fullness?.[place] ?? null, rate: rates[place] },
      };
    });
    const clouds = [...new Set(nodes.map((node) => node.cloud))];
    traces.push({
      x: at.map(([x]) => x),
      y: at.map(([, y]) => y),
      mode: nodes.length <= NAMED ? "markers+text" : "markers",
      type: "scatter",
      marker: {
        size: nodes.length <= NAMED ? 16 : 7,
        color: nodes.map((node) => report.series(clouds.indexOf(node.cloud))),
        line: { color: report.colour("raised"), width: 2 },
      },
      text: nodes.map((node) => report.label(node.name)),
      hoverinfo: "text",
      cliponaxis: false,
      showlegend: false,
      textposition: at.map(
        ([x, y]) =>
          `${y > 0.35 ? "top" : y < -0.35 ? "bottom" : "middle"} ${x > 0.35 ? "right" : x < -0.35 ? "left" : "center"}`,
      ),
      textfont: { color: report.colour("ink"), size: 12 },
    });
    traces.push(scale(fullness, most / size, unit));
    const hidden = { visible: false, fixedrange: true };
    const tall = nodes.length > 2 ? 1.3 : 0.5;
    const layout = {
      height: tall * 370,
      xaxis: { ...hidden, range: [-2.1, 2.1] },
      yaxis: { ...hidden, range: [-tall, tall], scaleanchor: "x" },
      dragmode: false,
    };
    const names = pairs.map(
      ([from, to]) => `${report.shortened(nodes[from].name)} → ${report.shortened(nodes[to].name)}`,
    );
    figure.draw(traces, layout, {
      label: `${nodes.length} nodes and ${pairs.length} directed links between them, by rate and utilization.`,
      columns: ["Link", `Rate (${unit})`, ...(fullness ? ["Utilization (%)"] : [])],
      rows: () => names.map((name, place) => [name, rates[place] / size, ...(fullness ? [100 * fullness[place]] : [])]),
    });
  }

  /** The colour bar. */
  function scale(fullness, most, unit) {
    const colorscale = [0, 1, 2, 3, 4].flatMap((step) => [
      [step / 5, shade((step + 0.5) / 5)],
      [(step + 1) / 5, shade((step + 0.5) / 5)],
    ]);
    const title = fullness ? "Utilization of the<br>fullest NIC or path (%)" : `Rate (${unit})`;
    return {
      x: [null],
      y: [null],
      mode: "markers",
      type: "scatter",
      showlegend: false,
      hoverinfo: "skip",
      marker: {
        color: [0],
        cmin: 0,
        cmax: fullness ? 100 : most,
        colorscale,
        showscale: true,
        colorbar: {
          title: { text: title, side: "right" },
          thickness: 12,
          outlinewidth: 0,
          len: 0.7,
          tickfont: { color: report.colour("quiet") },
        },
      },
    };
  }

  time.follow(() => data && draw());

  return (newest) => {
    if (!newest.links) return false;
    data = newest;
    draw();
    return true;
  };
});
