/* The summary of the run. */
report.view("headline", (body) => {
  const { element } = report;

  function fact({ label, value, note }) {
    return element(
      "div",
      {},
      element("dt", {}, label),
      element("dd", { class: "value" }, value),
      element("dd", { class: "note" }, note),
    );
  }

  return ({ headline }) => {
    body.replaceChildren(
      ...headline.warnings.map((warning) => element("p", { class: "warning", role: "note" }, warning)),
      element("dl", { class: "facts" }, ...headline.facts.map(fact)),
      element("p", { class: "bottleneck" }, headline.bottleneck),
    );
  };
});
