/* Asking who serves this page for newer data, and drawing these. */
(() => {
  const PAUSE = 2000;
  const REST = 10; // What is long to read is read more rarely.
  const status = report.element("span", { id: "watching", role: "status" });
  document.getElementById("tools").prepend(status);
  let shown = null;
  let pause = PAUSE;

  /** The JSON of an answer; of none, or one that tells a problem, an error. */
  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.problem);
    return told;
  }

  function say(text) {
    if (status.textContent !== text) status.textContent = text;
  }

  async function look() {
    try {
      const { version } = await ask("/version");
      if (version !== shown) {
        const begin = performance.now();
        const newer = await ask("/data");
        report.update(newer.data);
        document.title = document.querySelector("h1").textContent = newer.data.title;
        shown = newer.version;
        document.documentElement.dataset.version = shown;
        pause = Math.max(PAUSE, REST * (performance.now() - begin));
      }
      say("As it is now");
    } catch (error) {
      say(error instanceof TypeError ? "Nobody serves this any more: as it was last" : `As it was last: ${error.message}`);
    }
    setTimeout(look, pause);
  }

  addEventListener("load", look);
})();
