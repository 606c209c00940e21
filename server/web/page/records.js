// The measurements.
import {el, get, latency, link, number, problem, short, table, time, to, word} from './page.js';

const kOutcomes = ['', 'ok', 'invalid', 'compile_error', 'compile_timeout', 'run_timeout', 'crash', 'wrong_output', 'out_of_memory', 'device_lost'];
const kFields = [
  {name: 'operator', label: 'Operator'}, {name: 'target', label: 'Target'},
  {name: 'workload_digest', label: 'Workload digest'}, {name: 'job_id', label: 'Job'},
  {name: 'outcome', label: 'Outcome', choices: kOutcomes.map((name) => [name, name.replaceAll('_', ' ') || 'any'])},
  {name: 'quarantine', label: 'Quarantined', choices: [['', 'any'], ['QUARANTINE_NONE', 'no'], ['QUARANTINE_ONLY', 'only']]},
  {name: 'best_only', label: 'Published', choices: [['', 'any'], ['true', 'published bests only']]},
  {name: 'newest_first', label: 'Order', choices: [['true', 'newest first'], ['false', 'oldest first']]},
  {name: 'page_size', label: 'Rows', choices: [['50', '50'], ['200', '200'], ['1000', '1000']]},
];

const kColumns = [
  {name: 'id', value: (record) => record.id, right: true},
  {name: 'operator', value: (record) => record.operator},
  {name: 'workload', value: (record) => record.workload_digest,
    show: (record) => link(short(record.workload_digest), 'records', {workload_digest: record.workload_digest})},
  {name: 'outcome', value: (record) => record.result.outcome, show: (record) => el('span', {class: record.result.outcome === 'OUTCOME_OK' ? null : 'bad'}, word(record.result.outcome, 'OUTCOME_'))},
  {name: 'latency', value: (record) => record.result.latency_ns, show: (record) => latency(record.result.latency_ns), right: true},
  {name: 'spread', value: (record) => record.result.dispersion, show: (record) => number(100 * record.result.dispersion) + ' %', right: true},
  {name: 'policy', value: (record) => record.policy && record.policy.name},
  {name: 'quarantined', value: (record) => (record.quarantined ? record.quarantine_reason || 'yes' : ''), wrap: true},
  {name: 'target', value: (record) => record.target},
  {name: 'job', value: (record) => record.job_id, show: (record) => (record.job_id ? link(record.job_id, 'job', {id: record.job_id}) : '–')},
  {name: 'trial', value: (record) => record.trial, right: true},
  {name: 'time (UTC)', value: (record) => record.created_unix_ms, show: (record) => time(record.created_unix_ms)},
  {name: 'best kernel', show: (record) => link('show', 'kernel', {workload_digest: record.workload_digest, target: record.target, tolerance: record.tolerance || ''})},
];

export function records(body, parameters) {
  const fields = kFields.map((field) => {
    const given = parameters.get(field.name);
    if (!field.choices) return el('input', {name: field.name, value: given || ''});
    const select = el('select', {name: field.name}, field.choices.map(([value, name]) => el('option', {value}, name)));
    select.value = given ?? field.choices[0][0];
    return select;
  });
  const list = el('div', {}, 'Reading …');
  const submit = (event) => {
    event.preventDefault();
    location.hash = to('records', Object.fromEntries(fields.map((field) => [field.name, field.value.trim()])));
  };
  body.append(el('form', {submit}, kFields.map((field, i) => el('label', {}, field.label, fields[i])), el('button', {}, 'Show')), list);
  const query = Object.fromEntries(fields.map((field) => [field.name, field.value]));
  query.page_token = parameters.get('page_token') || '';
  // The published bests have one order only.
  if (query.best_only === 'true') delete query.newest_first;
  get('records', query).then((page) => {
    const shown = Object.fromEntries(fields.map((field) => [field.name, field.value]));
    list.replaceChildren(table(page.records.length ? `${page.records.length} records; a column's name sorts these rows` : 'No records', kColumns, page.records),
        el('p', {class: 'row'}, query.page_token && link('First page', 'records', shown),
            page.next_page_token && link('Next page', 'records', {...shown, page_token: page.next_page_token})));
  }, (error) => list.replaceChildren(problem(error)));
  return null;
}
