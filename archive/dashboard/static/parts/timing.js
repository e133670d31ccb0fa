// @ts-check
/** When a part of the page works: after typing, not too often, or once it is seen. */

/** Call a function once, a moment after the last request for it. @param {number} wait @param {() => void} work */
export function later(wait, work) {
  /** @type {number | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}

/**
 * Call a function now, or as soon as this much time has passed since its last call; again while it returns true.
 * @param {number} wait @param {() => Promise<boolean | void>} work must not fail
 */
export function throttled(wait, work) {
  let last = 0;
  /** @type {number | undefined} */
  let timer;
  return function again() {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      last = Date.now();
      if (await work()) again();
    }, Math.max(0, last + wait - Date.now()));
  };
}

/** The end of the last turn. @type {Promise<unknown>} */
let turn = Promise.resolve();

/** Wait for a frame in which no other part of the page works; the next one is left for what it draws. */
function ownFrame() {
  const mine = turn.then(() => new Promise(requestAnimationFrame));
  turn = mine.then(() => new Promise(requestAnimationFrame));
  return mine;
}

/**
 * Load a part of the page when it is first seen, and again after news.
 *
 * What follows news waits until the part is in sight, and takes a twentieth of the time at most, so that a costly part of
 * a large study burdens neither the page nor the server.
 * @param {Element} element @param {() => Promise<boolean | void> | boolean | void} load must not fail; true if it is worth another attempt @param {number} [pause] least milliseconds between two loads
 * @returns {(now?: boolean) => void} says that the part is out of date; `now` for a user's choice
 */
export function whenSeen(element, load, pause = 5000) {
  let [seen, stale, busy, due] = [false, true, false, 0];
  /** @type {number | undefined} */
  let timer;
  async function look() {
    clearTimeout(timer);
    if (!seen || !stale || busy) return;
    const wait = due - performance.now();
    if (wait > 0) {
      timer = setTimeout(look, wait);
      return;
    }
    busy = true;
    await ownFrame();
    stale = false;
    const begin = performance.now();
    if (await load()) stale = true;
    busy = false;
    due = performance.now() + Math.max(pause, 20 * (performance.now() - begin));
    look();
  }
  new IntersectionObserver((entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    look();
  }, { rootMargin: "200px" }).observe(element);
  return (now = false) => {
    stale = true;
    if (now) due = 0;
    look();
  };
}
