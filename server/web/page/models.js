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

// For each key of which several models are kept, a chart of what its models missed, over time.
function qualityOverTime(models) {
  const keys = new Map();
  for (const model of models) {
    if (model.origin) continue;
    const key = `${model.name}${model.operator ? `, ${model.operator}` : ''} on ${model.target}`;
    keys.set(key, [model, ...(keys.get(key) || [])]);  // the oldest first
  }
  return [...keys].filter(([, kept]) => kept.length > 1).map(([key, kept]) => {
    const names = ['loss_of_draft', 'loss_with_trees', 'pairwise', 'top1'].filter((name) => typeof metricsOf(kept[0])[name] === 'number').slice(0, 2);
    const series = names.map((name) => ({name, points: kept.filter((model) => name in metricsOf(model))
        .map((model) => [(model.created_unix_ms - kept[0].created_unix_ms) / 3600000, metricsOf(model)[name]])}));
    const told = series.map(({name, points}) => `${name} from ${shown(points[0][1])} to ${shown(points[points.length - 1][1])}`);
    return [el('h3', {}, key), chart(series, {label: `Quality of ${key} over time: ${told.join(', ')}`,
      xLabel: 'hours since the first of the models that are kept', yLabel: names.join(', '), note: told.join(', ')})];
  });
}

export function models(body) {
  body.textContent = 'Reading …';
  get('models', {with_earlier: true}).then((list) => {
    const learned = list.models.filter((model) => model.in_use && model.constants.length > 0);
    const charts = qualityOverTime(list.models);
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
        el('h2', {}, 'Quality over time'), ...(charts.length ? charts.flat() : [el('p', {class: 'soft'}, 'The server has not learned twice about a target yet.')]),
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
