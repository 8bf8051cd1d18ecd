/* The partition: samples of each class at each worker, or of each worker if there are no classes. */
report.view("partition", (body) => {
  const figure = report.figure(body, 240);
  const WRITTEN = 400;

  return ({ partition }) => {
    if (!partition) return false;
    const { workers, counts } = partition;
    const names = workers.map((name) => report.label(name));
    const hasClasses = counts[0].length > 1;
    const isFew = workers.length * counts[0].length <= WRITTEN;
    const trace = {
      type: "heatmap",
      z: counts,
      colorscale: "Cividis",
      zmin: 0,
      xgap: isFew ? 2 : 0,
      ygap: isFew ? 2 : 0,
      texttemplate: isFew ? "%{z}" : undefined,
      text: counts.map((row, place) => row.map(() => names[place])),
      hovertemplate: `%{text}${hasClasses ? ", class %{x}" : ""}: %{z} samples<extra></extra>`,
      colorbar: { thickness: 12, outlinewidth: 0, tickfont: { color: report.colour("quiet") } },
    };
    const layout = {
      height: Math.min(Math.max(24 * workers.length, 90), 560) + 70,
      xaxis: {
        title: { text: hasClasses ? "Class" : "" },
        showticklabels: hasClasses,
        dtick: counts[0].length <= 30 ? 1 : undefined,
        showgrid: false,
        fixedrange: true,
      },
      yaxis: { autorange: "reversed", showgrid: false, fixedrange: true, ...report.rows(workers) },
      dragmode: false,
    };
    figure.draw([trace], layout, {
      label: `Training samples${hasClasses ? " by class" : ""} of ${workers.length} workers.`,
      columns: ["Worker", ...(hasClasses ? counts[0].map((_, label) => `Class ${label}`) : ["Samples"])],
      rows: () => counts.map((row, place) => [workers[place], ...row]),
    });
    return true;
  };
});
