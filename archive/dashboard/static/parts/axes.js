// @ts-check
/** Ranges and ticks of axes. */

/** Least padding, as a share of the values: those that differ in their last bits only leave no room for ticks. */
const LEAST = 1e-9;

/** @param {number} low @param {number} high @param {number} [share] */
export function padded(low, high, share = 0.05) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  const pad = (high > low ? Math.max((high - low) * share, size * LEAST) : size * share) || 0.5;
  return [low - pad, high + pad];
}

/** Ticks at even steps; only `low` where a range is not finite, or so narrow that rounding loses a step. @param {number} low @param {number} high @param {number} most */
export function linearTicks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? power;
  if (!Number.isFinite(high - low) || !(low + step > low && high - step < high)) return [low];
  const first = Math.ceil(low / step);
  const count = Math.min(Math.floor(high / step + 1e-9) - first, Math.ceil(most)) + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** @param {number} low @param {number} high @param {number} most */
export function logTicks(low, high, most) {
  if (!(low > 0 && high < Infinity)) return linearTicks(low, high, most);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  if (ticks.length < 2) return linearTicks(low, high, most);
  return ticks.length > most ? ticks.filter((_, at) => at % Math.ceil(ticks.length / most) === 0) : ticks;
}

/** A time on an axis. @param {number} at @param {number} span milliseconds */
export function clock(at, span) {
  const date = new Date(at);
  if (span > 2 * 86400e3) return date.toLocaleDateString([], { month: "short", day: "numeric" });
  return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(span < 600e3 ? { second: "2-digit" } : {}) });
}

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const STEPS = [1, 2, 5, 10, 15, 30].map((each) => each * SECOND).concat([1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  [1, 2, 3, 6, 12].map((each) => each * HOUR), [1, 2, 7, 14, 30, 90, 365].map((each) => each * DAY));

/** Ticks at even times of the local clock. @param {number} begin @param {number} end milliseconds @param {number} most */
export function timeTicks(begin, end, most) {
  const step = STEPS.find((each) => (end - begin) / each <= most);
  if (end - begin < 2 * SECOND || !step) return linearTicks(begin, end, most);
  const shift = new Date(begin).getTimezoneOffset() * MINUTE;
  const ticks = [];
  for (let time = Math.ceil((begin - shift) / step) * step + shift; time <= end; time += step) ticks.push(time);
  return ticks;
}

/**
 * A scale that shows late gains: the distance to the best value, on a logarithmic axis with the best at the better end.
 *
 * The best itself stands half of the smallest gain from the best, since the logarithm of nothing is no place.
 * @param {number} best @param {number[]} steps values of the best so far @param {number} worst @param {number} sign 1 where larger is better
 * @returns {{ place: (value: number) => number, ticks: [number, string][] } | null} null where all values are equal
 */
export function regretScale(best, steps, worst, sign, text = String) {
  const range = sign * (best - worst);
  if (!(range > 0) || !Number.isFinite(range)) return null;
  const gains = steps.slice(1).map((value, at) => sign * (value - steps[at])).filter((gain) => gain > 0);
  const least = Math.max(range * 1e-4, Math.min(range / 10, ...gains) / 2);
  const place = (/** @type {number} */ value) => -sign * Math.log10(Math.max(sign * (best - value), least));
  /** @type {[number, string][]} */
  const ticks = [[place(best), text(best)]];
  for (let power = Math.ceil(Math.log10(least * 1.5)); power <= Math.log10(range) + 0.02; power++) {
    const gap = Number((10 ** power).toPrecision(1));
    ticks.push([place(best - sign * gap), `${sign > 0 ? "−" : "+"}${text(gap)}`]);
  }
  if (ticks.length < 3) ticks.push([place(worst), `${sign > 0 ? "−" : "+"}${text(Number(range.toPrecision(2)))}`]);
  return { place, ticks };
}
