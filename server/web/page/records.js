// The measurements.
import {counted, el, get, latency, link, percent, problem, short, table, time, to, word} from './page.js';

const kOutcomes = ['', 'ok', 'invalid', 'compile_error', 'compile_timeout', 'run_timeout', 'crash', 'wrong_output', 'out_of_memory', 'device_lost'];
const kFields = [
  {name: 'operator', label: 'Operator'}, {name: 'target', label: 'Target'},
  {name: 'workload_digest', label: 'Workload digest'}, {name: 'job_id', label: 'Job'}, {name: 'proposer', label: 'Proposed by'},
  {name: 'outcome', label: 'Outcome', choices: kOutcomes.map((name) => [name, name.replaceAll('_', ' ') || 'any'])},
  {name: 'quarantine', label: 'Quarantined', choices: [['', 'any'], ['QUARANTINE_NONE', 'no'], ['QUARANTINE_ONLY', 'only']]},
  {name: 'best_only', label: 'Published', choices: [['', 'any'], ['true', 'published bests only']]},
  {name: 'page_size', label: 'Rows', choices: [['50', '50'], ['200', '200'], ['1000', '1000']]},
];

// `order`: of the server, which sorts all records and not only those of the page.
const kColumns = [
  {name: 'id', order: 'RECORD_ORDER_UNSPECIFIED', show: (record) => record.id, right: true},
  {name: 'operator', order: 'RECORD_ORDER_OPERATOR', show: (record) => record.operator},
  {name: 'workload', order: 'RECORD_ORDER_WORKLOAD',
    show: (record) => link(short(record.workload_digest), 'records', {workload_digest: record.workload_digest, target: record.target})},
  {name: 'outcome', show: (record) => el('span', {class: record.result.outcome === 'OUTCOME_OK' ? null : 'bad'}, word(record.result.outcome, 'OUTCOME_'))},
  {name: 'latency', order: 'RECORD_ORDER_LATENCY', show: (record) => latency(record.result.latency_ns), right: true},
  {name: 'spread', show: (record) => percent(record.result.dispersion), right: true},
  {name: 'policy', show: (record) => record.policy && record.policy.name},
  {name: 'quarantined', show: (record) => (record.quarantined ? record.quarantine_reason || 'yes' : ''), wrap: true},
  {name: 'target', order: 'RECORD_ORDER_TARGET', show: (record) => record.target},
  {name: 'job', order: 'RECORD_ORDER_JOB', show: (record) => (record.job_id ? link(record.job_id, 'job', {id: record.job_id}) : '–')},
  {name: 'trial', show: (record) => record.trial, right: true},
  {name: 'proposed by', show: (record) => record.proposer || ''},
  {name: 'time (UTC)', order: 'RECORD_ORDER_TIME', show: (record) => time(record.created_unix_ms)},
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
  const filters = Object.fromEntries(fields.map((field) => [field.name, field.value]));
  const order = parameters.get('order') || kColumns[0].order;
  const state = {by: Math.max(0, kColumns.findIndex((column) => column.order === order)), down: parameters.get('newest_first') !== 'false'};
  const asked = () => ({...filters, order: state.by > 0 ? kColumns[state.by].order : '', newest_first: String(state.down)});
  let reading = 0;  // an answer that is late must not replace a newer one
  const read = (token) => {
    const number = ++reading;
    return get('records', {...asked(), page_token: token}).then((page) => {
      if (number !== reading) return false;
      state.orders = page.orders;
      const sortable = kColumns.filter((column) => page.orders.includes(column.order)).map((column) => column.name);
      const which = kColumns[state.by].name === 'latency' ? ' that are ok and not quarantined' : '';
      list.replaceChildren(table(page.records.length
        ? `${counted(page.records.length, 'record')}${which}, sorted by ${kColumns[state.by].name}. With these filters, all records can be sorted by ${sortable.join(', ')}.`
        : 'No records', kColumns, page.records, state),
      el('p', {class: 'row'}, token && link('First page', 'records', asked()),
          page.next_page_token && link('Next page', 'records', {...asked(), page_token: page.next_page_token})));
      return true;
    }, (error) => list.replaceChildren(problem(error)));
  };
  // A click on the name of a column: the first page of the new order, whose address can be kept and gone back from.
  state.changed = () => {
    history.pushState(null, '', to('records', asked()));
    read('').then((shown) => shown && list.querySelectorAll('th')[state.by].querySelector('button').focus());
  };
  read(parameters.get('page_token') || '');
  return () => { ++reading; };
}
