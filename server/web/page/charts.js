// Charts as SVG, with a text that says the same.
import {el} from './page.js';

// There is room for the larger texts of narrow screens (style.css).
const kWidth = 800, kHeight = 320, kLeft = 70, kRight = 20, kTop = 36, kBottom = 60;

const tick = (value) => (value === 0 ? '0' : Math.abs(value) >= 1e6 || Math.abs(value) < 1e-2 ? value.toExponential(0) : String(+value.toPrecision(3)));

function scaleOf(low, high, from, to, log) {
  const f = log ? Math.log10 : (x) => x;
  const [a, b] = [f(low), f(high)];
  const span = b - a || 1;
  return (value) => from + (f(value) - a) / span * (to - from);
}
function ticksOf(low, high, log) {
  if (log) {
    const ticks = [];
    const factors = high / low > 1000 ? [1] : [1, 2, 5];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) ticks.push(...factors.map((factor) => factor * 10 ** power));
    return ticks.filter((tick) => tick >= low && tick <= high);
  }
  // Steps of 1, 2 or 5 times a power of ten.
  const rough = (high - low || 1) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step) ticks.push(tick);
  return ticks;
}

// `options`: label, xLabel, yLabel, log (both axes), steps, range ([x0, x1, y0, y1]), points ([{x, y, name}]).
// `series`: [{name, points: [[x, y], …]}]
export function chart(series, options) {
  const all = [...series.flatMap((one) => one.points), ...(options.points || []).map((point) => [point.x, point.y])];
  if (all.length === 0) return el('p', {class: 'soft'}, `${options.label}: no data yet`);
  const xs = all.map((point) => point[0]), ys = all.map((point) => point[1]);
  const min = (values) => values.reduce((a, b) => Math.min(a, b)), max = (values) => values.reduce((a, b) => Math.max(a, b));
  const [x0, x1, y0, y1] = options.range || [min(xs), max(xs), options.zero === false ? min(ys) : 0, max(ys) * 1.05];
  const x = scaleOf(x0, x1, kLeft, kWidth - kRight, options.log);
  const y = scaleOf(y0, y1, kHeight - kBottom, kTop, options.log);
  const svg = el('svg', {viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'img', 'aria-label': options.label});
  for (const value of ticksOf(x0, x1, options.log)) {
    svg.append(el('line', {class: 'axis', x1: x(value), x2: x(value), y1: kTop, y2: kHeight - kBottom}),
        el('text', {x: x(value), y: kHeight - kBottom + 22, 'text-anchor': 'middle'}, tick(value)));
  }
  for (const value of ticksOf(y0, y1, options.log)) {
    svg.append(el('line', {class: 'axis', x1: kLeft, x2: kWidth - kRight, y1: y(value), y2: y(value)}),
        el('text', {x: kLeft - 6, y: y(value) + 4, 'text-anchor': 'end'}, tick(value)));
  }
  svg.append(el('text', {x: kWidth / 2, y: kHeight - 9, 'text-anchor': 'middle'}, options.xLabel),
      el('text', {x: 6, y: 22}, options.yLabel));
  series.forEach((one, i) => {
    let path = '';
    one.points.forEach(([a, b], k) => {
      path += k === 0 ? `M${x(a)} ${y(b)}` : options.steps ? `H${x(a)}V${y(b)}` : `L${x(a)} ${y(b)}`;
    });
    svg.append(el('path', {class: `series${i + 1}`, d: path || 'M0 0'}));
  });
  for (const point of options.points || []) {
    svg.append(el('circle', {class: 'point', cx: x(point.x), cy: y(point.y), r: 5}),
        el('text', {x: x(point.x) + 8, y: y(point.y) + 20, 'text-anchor': x(point.x) > kWidth / 2 ? 'end' : 'start'}, point.name));
  }
  return el('figure', {}, svg, el('figcaption', {}, series.map((one, i) => el('span', {class: `key${i + 1}`}, one.name)), options.note || ''));
}

// The best so far of trials [[trial, unix_ms, latency_ns], …], as [x, latency] with x of each trial from `xOf`.
export function bestSoFar(trials, xOf) {
  const points = [];
  let best = Infinity;
  for (const trial of trials) {
    if (trial[2] < best) points.push([xOf(trial), best = trial[2]]);
  }
  if (points.length > 0) points.push([xOf(trials[trials.length - 1]), best]);
  return points;
}

export function roofline(kernel) {
  const {peak_gflops: peak, read_gbps: rate, gflops} = kernel.best;
  const {flops, bytes} = kernel;
  if (!(peak > 0) || !(gflops > 0) || !(flops > 0) || !(bytes > 0)) {
    return el('p', {class: 'soft'}, 'The roofline needs the peak of the device and the latency of the kernel, of which one is unknown.');
  }
  const intensity = flops / bytes;
  const ridge = rate > 0 ? peak / rate : intensity;
  const x0 = Math.min(intensity, ridge) / 8, x1 = Math.max(intensity, ridge) * 8;
  const points = rate > 0 ? [[x0, x0 * rate], [ridge, peak], [x1, peak]] : [[x0, peak], [x1, peak]];
  return chart([{name: 'roofline: memory, then peak', points}], {
    label: `Roofline: ${gflops.toFixed(1)} GFLOP/s at ${intensity.toFixed(2)} operations per byte; peak ${peak.toFixed(1)} GFLOP/s`,
    xLabel: 'operations per byte', yLabel: 'GFLOP/s', log: true,
    range: [x0, x1, Math.min(gflops, points[0][1]) / 4, peak * 2],
    points: [{x: intensity, y: gflops, name: `this kernel: ${gflops.toFixed(1)} GFLOP/s`}],
  });
}
