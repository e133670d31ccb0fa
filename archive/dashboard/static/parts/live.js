// @ts-check
/**
 * News of the server: one stream for a page, which resumes where it was cut.
 *
 * The browser resumes a lost connection by itself, with the id of the last message. A connection may also die without a
 * sign: a laptop sleeps, a network changes. The server beats every ten seconds; without a beat the stream is opened
 * again, from the last id.
 */

import { one } from "./page.js";
import { later } from "./timing.js";

const SILENCE = 25_000;
const CHECK = 5_000;
const RETRY = 3_000;

/**
 * Follow topics.
 * @param {Record<string, string>} topics version that the page has seen of each topic; "" for none
 * @param {(news: Record<string, any>) => void} listener
 * @returns {() => void} ends the stream
 */
export function follow(topics, listener) {
  let last = "";
  let heard = Date.now();
  /** @type {EventSource | null} */
  let source = null;
  const end = new AbortController();
  const { signal } = end;
  const light = one("#live");
  const trouble = one("#trouble");

  function open() {
    if (signal.aborted) return;
    source?.close();
    const asked = new URLSearchParams();
    for (const [topic, seen] of Object.entries(topics)) asked.append("topic", `${topic}@${last || seen}`);
    heard = Date.now();
    source = new EventSource(`/events?${asked}`);
    source.onopen = () => state("on", "Live");
    source.onerror = () => {
      state("off", "The dashboard does not answer; trying again");
      // A refused stream (a server that has restarted with another token, say) is not opened again by the browser.
      if (source?.readyState === EventSource.CLOSED) checkSoon();
    };
    source.addEventListener("news", (event) => {
      alive();
      last = event.lastEventId;
      listener(JSON.parse(event.data));
    });
    source.addEventListener("beat", alive);
    source.addEventListener("trouble", (event) => {
      alive();
      const reasons = Object.values(JSON.parse(event.data));
      trouble.hidden = reasons.length === 0;
      trouble.textContent = reasons.length ? String(reasons[0]) : "";
    });
  }

  function alive() {
    heard = Date.now();
    state("on", "Live");
  }

  /** @param {string} name @param {string} title */
  function state(name, title) {
    light.className = `live ${name}`;
    light.title = title;
    light.textContent = name === "on" ? "live" : "offline";
  }

  async function check() {
    if (signal.aborted) return;
    if (source?.readyState === EventSource.CLOSED) {
      const answer = await fetch("/api/queries", { method: "HEAD" }).catch(() => null);
      if (answer?.status === 401) location.reload();
      else if (answer) open();
      else checkSoon();
    } else if (Date.now() - heard > SILENCE) {
      state("off", "No sign of the dashboard; connecting again");
      open();
    }
  }

  // One timer: each check of a long outage asks for another one.
  const checkSoon = later(RETRY, check);
  open();
  const timer = setInterval(check, CHECK);
  addEventListener("online", open, { signal });
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && check(), { signal });
  // A stream that stays open would keep a page out of the browser's cache of pages.
  addEventListener("pagehide", () => source?.close(), { signal });
  addEventListener("pageshow", (event) => event.persisted && open(), { signal });
  return () => {
    end.abort();
    clearInterval(timer);
    source?.close();
  };
}
