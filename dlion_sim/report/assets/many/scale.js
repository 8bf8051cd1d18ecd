/* Scales of axes. */
report.scale = (() => {
  const WIDE = 30;

  const known = (values) => values.filter((value) => value !== null && value !== undefined);

  /** Whether values span enough for a logarithmic axis. */
  function isWide(values) {
    const all = known(values);
    return all.length > 1 && Math.min(...all) > 0 && Math.max(...all) > WIDE * Math.min(...all);
  }

  const LOGARITHMIC = { type: "log", tickformat: ",.3~r" }; // Plotly's default ticks omit powers of ten.

  /** Plotly's axis for the values. */
  const axis = (values) => (isWide(values) ? LOGARITHMIC : {});

  /** About five round numbers from `low` to `high`. */
  function ticks(low, high) {
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((each) => each * power >= rough);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, number) => (first + number) * step);
  }

  /** Round numbers whose logarithms are from `low` to `high`. */
  function decades(low, high) {
    const digits = high - low > 3 ? [1] : high - low > 1.5 ? [1, 3] : [1, 2, 5];
    const powers = Array.from({ length: Math.floor(high) - Math.floor(low) + 1 }, (_, number) => 10 ** (Math.floor(low) + number));
    const all = powers.flatMap((power) => digits.map((digit) => digit * power));
    return all.filter((value) => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
  }

  /**
   * Values as `places` from 0 to 1 on a custom axis, and its `ticks` as pairs of place and text. Unknown values have a
   * place beyond the others, at the worse end.
   */
  function places(values, isMoreBetter) {
    const isLog = isWide(values);
    const all = known(values).map((value) => (isLog ? Math.log10(value) : value));
    let [low, high] = all.length ? [Math.min(...all), Math.max(...all)] : [0, 1];
    if (low === high) [low, high] = [low - (Math.abs(low) / 2 || 1), high + (Math.abs(high) / 2 || 1)];
    const marks = isLog ? decades(low, high).map((value) => [Math.log10(value), value]) : ticks(low, high).map((value) => [value, value]);
    const beyond = (high - low) / 8;
    const nowhere = isMoreBetter ? low - beyond : high + beyond;
    if (all.length < values.length) [low, high] = [Math.min(low, nowhere), Math.max(high, nowhere)];
    const place = (value) => (value - low) / (high - low);
    return {
      places: values.map((value) => place(value === null ? nowhere : isLog ? Math.log10(value) : value)),
      ticks: [
        ...marks.map(([at, value]) => [place(at), report.number(value, 3)]),
        ...(all.length < values.length ? [[place(nowhere), "unknown"]] : []),
      ],
    };
  }

  return { axis, places, LOGARITHMIC };
})();
