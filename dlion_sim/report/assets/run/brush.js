/* The time range of all views: dragged over a small curve of the metric, or moved by the keyboard. */
report.view("brush", (body) => {
  const { element, time } = report;
  const SVG = "http://www.w3.org/2000/svg";
  const STEPS = 1000;
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "polyline");
  const shown = document.createElementNS(SVG, "rect");
  const text = element("output", { id: "shown-time", "aria-live": "polite" });
  const reset = element("button", { type: "button", id: "whole-run" }, "Whole run");
  const ends = ["Begin of the time shown", "End of the time shown"].map((label) =>
    element("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": label }),
  );
  svg.setAttribute("viewBox", `0 0 ${STEPS} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  shown.setAttribute("y", "0");
  shown.setAttribute("height", "100");
  svg.append(shown, line);
  body.append(element("div", { class: "brush" }, element("div", { class: "track" }, svg, ...ends), text, reset));

  let wanted = null;

  /** Show a range at the next frame, as dragging gives more ranges than can be drawn. */
  function showSoon(range) {
    if (wanted === null) {
      requestAnimationFrame(() => {
        time.show(wanted);
        wanted = null;
        follow();
      });
    }
    wanted = range;
  }

  const toTime = (step) => (step / STEPS) * time.whole()[1];

  function follow() {
    const [begin, end] = time.range();
    const whole = time.whole()[1];
    const steps = [begin, end].map((each) => (each / whole) * STEPS);
    shown.setAttribute("x", steps[0]);
    shown.setAttribute("width", steps[1] - steps[0]);
    ends.forEach((input, place) => {
      input.value = Math.round(steps[place]);
      input.setAttribute("aria-valuetext", report.seconds([begin, end][place], whole));
    });
    text.textContent = `${report.seconds(begin, whole)} to ${report.seconds(end, whole)}`;
    reset.disabled = begin === 0 && end === whole;
  }

  ends.forEach((input, place) =>
    input.addEventListener("input", () => {
      const steps = ends.map((each) => Number(each.value));
      if (steps[1] <= steps[0]) steps[place] = steps[1 - place] + (place ? 1 : -1);
      showSoon(steps.map(toTime));
    }),
  );
  reset.addEventListener("click", () => time.show(null));

  let from = null;
  const at = (event) => {
    const box = svg.getBoundingClientRect();
    return toTime(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * STEPS);
  };
  svg.addEventListener("pointerdown", (event) => {
    from = at(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => from !== null && at(event) !== from && showSoon([from, at(event)]));
  svg.addEventListener("pointerup", () => (from = null));
  time.follow(follow);

  return ({ end, metric }) => {
    time.span(end);
    const known = metric.mean.filter((value) => value !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const points = metric.times.map((each, place) => [each, metric.mean[place]]).filter(([, value]) => value !== null);
    const height = (value) => 90 - 80 * ((value - low) / (high - low || 1));
    line.setAttribute("points", points.map(([each, value]) => `${(each / end) * STEPS},${height(value)}`).join(" "));
    follow();
  };
});
