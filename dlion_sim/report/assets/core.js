"use strict";
/* What all scripts of a page share: its data, and the views that draw it. */
const report = (() => {
  const setups = new Map();
  const draws = [];
  let data = null;

  /**
   * Have the sections with data-view `name` drawn: `setup(body)` is called once and returns draw(data). A section is
   * not shown where that returns false, as there is nothing to draw.
   */
  function view(name, setup) {
    setups.set(name, setup);
  }

  function present(section, isThere) {
    section.hidden = !isThere;
    document.querySelector(`nav a[href="#${section.id}"]`).parentElement.hidden = !isThere;
  }

  /** Draw everything for the first time: one view after the other, so that the first ones show while others are drawn. */
  async function start() {
    data = JSON.parse(document.getElementById("data").textContent);
    for (const section of document.querySelectorAll("section[data-view]")) {
      const draw = setups.get(section.dataset.view)(section.querySelector(".body"));
      draws.push((told) => {
        present(section, true); // What is hidden has no size to draw at.
        present(section, draw(told) !== false);
      });
    }
    for (const draw of draws) {
      draw(data);
      await new Promise((done) => setTimeout(done));
    }
    document.documentElement.dataset.ready = "true";
  }

  /** Draw newer data in place; switches and zoom stay. */
  function update(newer) {
    data = newer;
    redraw();
  }

  /** Draw the same data again, as in other colours. */
  function redraw() {
    for (const draw of draws) draw(data);
  }

  const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array };

  /** The numbers of an array as Python packed it, in one row after the other. */
  function numbers(packed) {
    const text = atob(packed.bdata);
    const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    return new ARRAYS[packed.dtype](bytes.buffer);
  }

  return { view, start, update, redraw, numbers };
})();
