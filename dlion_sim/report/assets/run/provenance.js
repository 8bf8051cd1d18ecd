/* The scenario and versions of the run, and the command to repeat it. */
report.view("provenance", (body) => {
  const { element } = report;

  const list = (pairs) =>
    element(
      "dl",
      { class: "pairs" },
      ...pairs.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { dir: "auto" }, value)]),
    );

  return ({ provenance: { yaml, command, facts, versions } }) => {
    body.replaceChildren(
      element("p", {}, "To repeat the run, with the scenario below in the folder:"),
      element("pre", {}, command),
      element(
        "div",
        { class: "columns" },
        element("div", {}, element("h3", {}, "The run"), list(facts)),
        element("div", {}, element("h3", {}, "Versions"), list(versions)),
      ),
      element(
        "details",
        {},
        element("summary", {}, "scenario.yaml"),
        element(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": "scenario.yaml" },
          element("pre", {}, yaml),
        ),
      ),
    );
    return true;
  };
});
