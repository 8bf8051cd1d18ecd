/* Creates elements. Text only becomes text nodes, or escaped text of plots. */

/** An element with attributes and children; strings are text. */
report.element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

/** A name shortened to `most` letters in its middle. */
report.shortened = (name, most = 28) => {
  const letters = Array.from(String(name));
  if (letters.length <= most) return String(name);
  const half = Math.floor((most - 1) / 2);
  return `${letters.slice(0, half).join("")}…${letters.slice(-half).join("")}`;
};

/** A name escaped for plots, as Plotly interprets some tags and entities. */
report.label = (name, most) =>
  report.shortened(name, most).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** A number as text: with thousands separators and three or four digits. */
report.number = (value, digits = 4) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  const whole = Math.abs(value) >= 10 ** (digits - 1);
  return value.toLocaleString("en", whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });
};

/** A table with column names and rows of cells. */
report.table = (caption, columns, rows) => {
  const { element } = report;
  const cell = (value, place) => {
    const numeric = typeof value === "number";
    const text = numeric ? report.number(value) : String(value ?? "–");
    return place === 0
      ? element("th", { scope: "row", dir: "auto" }, text)
      : element("td", { class: numeric ? "number" : null, dir: "auto" }, text);
  };
  const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col", dir: "auto" }, name)));
  const body = rows.map((row) => element("tr", {}, ...row.map(cell)));
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body)),
  );
};
