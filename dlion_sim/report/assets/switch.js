/* A choice of one option among a few. */

/** A group of radio buttons; `options` are [value, label] pairs, and `changed(value)` is called on a choice. */
report.choice = (legend, options, changed) => {
  const name = `choice-${document.querySelectorAll("fieldset.choice").length}-${legend.replace(/\W/g, "")}`;
  const inputs = options.map(([value, label], place) => {
    const input = report.element("input", { type: "radio", name, value, checked: place === 0 });
    input.addEventListener("change", () => changed(value));
    return report.element("label", {}, input, report.element("span", {}, label));
  });
  const group = report.element("fieldset", { class: "choice" }, report.element("legend", {}, legend), ...inputs);
  group.hidden = options.length < 2;
  return group;
};
