"use strict";
/* Shared by all scripts of a page: its data, and the views that draw it. */
const report = (() => {
  const setups = new Map();
  const draws = [];
  let data = null;

  /**
   * Register the view of sections with data-view `name`: `setup(body)` is called once and returns draw(data). The
   * section is hidden if that returns false.
   */
  function view(name, setup) {
    setups.set(name, setup);
  }

  function present(section, isVisible) {
    section.hidden = !isVisible;
    document.querySelector(`nav a[href="#${section.id}"]`).parentElement.hidden = !isVisible;
  }

  /** Draw all views for the first time, one after the other, so that the first ones show early. */
  async function start() {
    data = JSON.parse(document.getElementById("data").textContent);
    for (const section of document.querySelectorAll("section[data-view]")) {
      const draw = setups.get(section.dataset.view)(section.querySelector(".body"));
      draws.push((newest) => {
        present(section, true); // Hidden elements have no size.
        present(section, draw(newest) !== false);
      });
    }
    for (const draw of draws) {
      draw(data);
      await new Promise((done) => setTimeout(done));
    }
    document.documentElement.dataset.ready = "true";
  }

  /** Draw newer data in place; keeps switches and zoom. */
  function update(newer) {
    data = newer;
    redraw();
  }

  /** Draw the same data again, such as in other colours. */
  function redraw() {
    for (const draw of draws) draw(data);
  }

  const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array };

  /** The numbers of an array packed by Python, row by row. */
  function numbers(packed) {
    const text = atob(packed.bdata);
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    return new ARRAYS[packed.dtype](bytes.buffer);
  }

  return { view, start, update, redraw, numbers };
})();
