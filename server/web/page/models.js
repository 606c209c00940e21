// What the server has learned: the constants of machines, and the quality of models.
import {count, el, facts, get, number, problem, table, time} from './page.js';
import {chart} from './charts.js';

function metricsOf(model) {
  try {
    return JSON.parse(model.metrics || '{}');
  } catch {
    return {};
  }
}
const numbersOf = (model) => Object.entries(metricsOf(model)).filter(([, value]) => typeof value === 'number');
const shown = (value) => String(+Number(value).toPrecision(4));

// A chart of each metric that several models of the same kind and target have, over time.
function qualityOverTime(models) {
  const series = new Map();
  for (const model of models) {
    for (const [metric, value] of numbersOf(model)) {
      const key = `${metric} of ${model.name} on ${model.target}`;
      series.set(key, [...(series.get(key) || []), [model.created_unix_ms, value]]);
    }
  }
  return [...series].filter(([, points]) => points.length > 1).map(([name, points]) => {
    points.sort((a, b) => a[0] - b[0]);
    const begin = points[0][0];
    return chart([{name, points: points.map(([x, y]) => [(x - begin) / 3600000, y])}],
        {label: `${name} over time, from ${shown(points[0][1])} to ${shown(points[points.length - 1][1])}`, xLabel: 'hours since the first model', yLabel: name.split(' ')[0]});
  });
}

export function models(body) {
  body.textContent = 'Reading …';
  get('models', {}).then((list) => {
    const learned = list.models.filter((model) => model.constants.length > 0);
    body.replaceChildren(
        table(list.models.length ? `${list.models.length} trained models` : 'No models yet: the server learns from 64 results of a target on', [
          {name: 'model', value: (model) => model.name}, {name: 'features', value: (model) => model.feature_set || '–'},
          {name: 'target', value: (model) => model.target}, {name: 'operator', value: (model) => model.operator || 'all'},
          {name: 'trained (UTC)', value: (model) => model.created_unix_ms, show: (model) => time(model.created_unix_ms)},
          {name: 'records', value: (model) => model.records, show: (model) => count(model.records), right: true},
          {name: 'workloads', value: (model) => model.workloads, show: (model) => count(model.workloads), right: true},
          {name: 'in use', value: (model) => (model.in_use ? 'yes' : 'no')}, {name: 'from', value: (model) => model.origin || 'this server'},
          {name: 'quality on held-out trials', wrap: true, show: (model) => numbersOf(model).map(([name, value]) => `${name} ${shown(value)}`).join(', ') || '–'},
        ], list.models),
        ...qualityOverTime(list.models),
        ...learned.flatMap((model) => [el('h2', {}, `Calibration of ${model.target} (${model.name}${model.operator ? `, ${model.operator}` : ''})`),
          table(`Constants of the estimate, ${model.origin ? `imported from ${model.origin}` : `as of ${time(model.created_unix_ms)}`}`, [
            {name: 'constant', value: (one) => one.meaning || one.name}, {name: 'ns', value: (one) => one.ns, show: (one) => number(one.ns, 3), right: true},
            {name: 'cycles', value: (one) => one.cycles, show: (one) => number(one.cycles, 2), right: true},
            {name: 'usual for this kind', value: (one) => one.preset_cycles, show: (one) => number(one.preset_cycles, 2), right: true},
            {name: 'source', value: (one) => (one.measured ? 'measured' : 'kind of CPU'), show: (one) => `${one.measured ? 'measured' : 'kind of CPU'}${one.unusual ? ', unusual' : ''}`},
          ], model.constants)]),
        el('h2', {}, 'Kinds of models'), facts(list.kinds.map((kind) => [kind.name, kind.missing || `features: ${kind.feature_set || 'none'}`])));
  }, (error) => body.replaceChildren(problem(error)));
  return null;
}
