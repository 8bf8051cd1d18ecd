/* Light and dark mode: the system's, until the reader chooses. */
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const probe = report.element("span", { hidden: true });
  document.body.append(probe);

  /** The colour of a CSS variable in the current theme, as rgb(...). */
  report.colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  /** The same with opacity `part`. */
  report.faded = (name, part) => report.colour(name).replace(/^rgba?\(([^,]+,[^,]+,[^,)]+).*\)$/, `rgba($1, ${part})`);

  /** The colour of the worker, group or kind of that number. */
  report.series = (number) => report.colour(`series-${number % 8}`);

  /** The dashes of the line of that number, to distinguish lines without colours. */
  report.dash = (number) => ["solid", "dash", "dot", "dashdot"][(number + Math.floor(number / 8)) % 4];

  report.isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches) && !printing.matches;

  const button = report.element("button", { type: "button", id: "theme", "aria-pressed": "false" });

  function show() {
    button.textContent = report.isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", report.isDark() ? "Switch to light colours" : "Switch to dark colours");
    button.setAttribute("aria-pressed", String(report.isDark()));
  }

  button.addEventListener("click", () => {
    root.dataset.theme = report.isDark() ? "light" : "dark";
    show();
    report.redraw();
  });
  for (const query of [system, printing]) {
    query.addEventListener("change", () => {
      show();
      report.redraw();
    });
  }
  document.getElementById("tools").append(button);
  show();
})();
