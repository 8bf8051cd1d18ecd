/* Quantities in readable units. */
(() => {
  const TIMES = [
    [3600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const BYTES = [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
    [1, "B"],
  ];
  const RATES = [
    [1e9, "Gbps"],
    [1e6, "Mbps"],
    [1e3, "kbps"],
    [1, "bps"],
  ];
  const FEWEST = 5;

  /** The unit for times up to so many seconds: [seconds, name]. */
  report.timeUnit = (most) => TIMES.find(([size]) => most >= FEWEST * size * (size > 1 ? 4 : 0)) ?? TIMES.at(-1);

  const fitting = (units, most) => units.find(([size]) => most >= size) ?? units.at(-1);
  report.byteUnit = (most) => fitting(BYTES, most);
  report.rateUnit = (most) => fitting(RATES, most);

  /** A time in seconds as text. */
  report.seconds = (value, most = value) => {
    const [size, name] = report.timeUnit(most);
    return `${report.number(value / size, 3)} ${name}`;
  };

  /** Linear interpolation over increasing `xs` at `x`. */
  report.interpolated = (xs, ys, x) => {
    const after = xs.findIndex((each) => each >= x);
    if (after <= 0) return after < 0 ? ys.at(-1) : ys[0];
    const part = (x - xs[after - 1]) / (xs[after] - xs[after - 1]);
    return ys[after - 1] + part * (ys[after] - ys[after - 1]);
  };
})();
