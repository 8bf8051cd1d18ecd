/* The trade-off of two quantities, with the Pareto front. */
report.view("front", (body) => {
  const { groups } = report;
  const pairs = groups.menu("Show", () => draw());
  body.append(pairs.made);
  const figure = report.figure(body, 420);
  let data = null;

  const isBound = (group, x, y) => Boolean(group.outcome[x.key].bound || group.outcome[y.key].bound);

  /** The Pareto front of the members that are representative and have no bounds. */
  function best(members, x, y) {
    const good = (quantity, group) => group.outcome[quantity.key].value * (quantity.more ? -1 : 1);
    const order = members
      .filter(([group]) => group.tells && !isBound(group, x, y))
      .map((member) => [good(x, member[0]), good(y, member[0]), member])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let least = Infinity;
    let at = NaN;
    return order.flatMap(([first, second, member]) => {
      if (!(second < least || (second === least && first === at))) return [];
      [least, at] = [second, first];
      return [member];
    });
  }

  const place = (members, x, y) => ({
    x: members.map(([group]) => group.outcome[x.key].value),
    y: members.map(([group]) => group.outcome[y.key].value),
  });

  function points(members, x, y) {
    const text = members.map(([group]) =>
      [group.name, `${x.heading}: ${group.outcome[x.key].text}`, `${y.heading}: ${group.outcome[y.key].text}`]
        .map((line) => report.label(line, 60))
        .join("<br>"),
    );
    return {
      ...place(members, x, y),
      text,
      customdata: members.map(([group]) => group.id),
      type: "scatter",
      mode: "markers",
      hovertemplate: "%{text}<extra></extra>",
    };
  }

  const MOST_NAMED = 8;

  /** The names of groups beside their points, on the side with space. */
  function named(members, all, x, y) {
    const at = place(members, x, y);
    const across = place(all, x, y).x;
    const scale = report.scale.axis(across).type ? Math.log : (value) => value;
    const [low, high] = [Math.min(...across), Math.max(...across)].map(scale);
    const most = Math.max(8, Math.min(28, Math.floor(figure.plot.clientWidth / 24)));
    return {
      ...at,
      type: "scatter",
      mode: "text",
      text: members.map(([group]) => `\u00a0\u00a0${report.label(group.name, most)}\u00a0\u00a0`),
      textposition: at.x.map((each, number) => `${number % 2 ? "bottom" : "top"} ${2 * scale(each) > low + high ? "left" : "right"}`),
      textfont: { size: 11, color: report.colour("ink") },
      cliponaxis: false,
      hoverinfo: "skip",
      showlegend: false,
      name: "Names",
    };
  }

  function draw() {
    const [x, y] = (pairs.value() ?? "").split(" ").map((key) => data.quantities.find((each) => each.key === key));
    if (!y) return false;
    const isKnown = ([group]) => group.outcome[x.key].value !== null && group.outcome[y.key].value !== null;
    const axis = groups.colouring(data);
    const [shown, others] = groups.parted(data).map((members) => members.filter(isKnown));
    const front = best(shown, x, y);
    const grey = { size: 8, color: report.faded("quiet", 0.3) };
    const traces = [
      { ...place(front, x, y), type: "scatter", mode: "lines", line: { color: report.colour("quiet"), width: 1.5 }, hoverinfo: "skip", name: "Pareto front" },
      { ...points(others, x, y), marker: grey, showlegend: false },
      named(shown.length > MOST_NAMED ? front : shown, shown, x, y),
    ];
    axis.values.forEach((value, number) => {
      const members = shown.filter(([, each]) => axis.places[each] === number);
      const [known, bounds] = [members.filter(([group]) => !isBound(group, x, y)), members.filter(([group]) => isBound(group, x, y))];
      const color = groups.colour(axis, number);
      const marker = { size: 10, color, line: { width: 1.5, color } };
      if (known.length) traces.push({ ...points(known, x, y), name: report.label(value), marker });
      if (bounds.length) traces.push({ ...points(bounds, x, y), name: report.label(value), showlegend: !known.length, marker: { ...marker, symbol: "circle-open" } });
    });
    const layout = {
      xaxis: { title: { text: report.label(x.heading, 60) }, ...report.scale.axis(traces.flatMap((trace) => trace.x)) },
      yaxis: { title: { text: report.label(y.heading, 60) }, ...report.scale.axis(traces.flatMap((trace) => trace.y)) },
      uirevision: pairs.value(),
    };
    const onFront = new Set(front.map(([group]) => group.id));
    figure.draw(traces, layout, {
      label: `${y.heading} against ${x.heading} of ${shown.length} groups of runs, ${front.length} of which are on the Pareto front`,
      columns: ["Group", x.heading, y.heading, "On the Pareto front"],
      rows: () => shown.map(([group]) => [group.name, group.outcome[x.key].text, group.outcome[y.key].text, onFront.has(group.id) ? "yes" : "no"]),
    });
    groups.clicks(figure.plot);
    return true;
  }

  groups.follow(draw);
  return (newest) => {
    data = newest;
    const all = data.quantities;
    const found = all.flatMap((y, one) => all.slice(one + 1).map((x) => [`${x.key} ${y.key}`, `${x.heading} and ${y.heading}`]));
    pairs.fill(found);
    return draw();
  };
});
