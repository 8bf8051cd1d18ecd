/* Polls the server for newer data and draws it. */
(() => {
  const PAUSE = 2000;
  const REST = 10; // Data that takes long to read is read less often.
  const status = report.element("span", { id: "watching", role: "status" });
  document.getElementById("tools").prepend(status);
  let shown = null;
  let pause = PAUSE;

  /** The JSON of a response; throws if there is none, or if it is an error. */
  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.problem);
    return value;
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
      say("Up to date");
    } catch (error) {
      say(error instanceof TypeError ? "Server not reachable: last version shown" : `Last version shown: ${error.message}`);
    }
    setTimeout(look, pause);
  }

  addEventListener("load", look);
})();
