// The workers.
import {action, count, counted, el, follow, link, mayAdminister, number, problem, short, table, time} from './page.js';

const kPage = 100;
const kMost = 1000;  // the server's limit of a page

function stateOf(worker) {
  if (worker.flagged) return 'gets no work';
  if (!worker.connected) return worker.stopping ? 'stopped' : 'away';
  if (worker.draining) return worker.leases > 0 ? 'draining' : 'drained';
  if (worker.silent) return 'silent';
  return worker.leases > 0 ? 'working' : 'idle';
}
const does = (worker) => [worker.can_build && 'builds', worker.can_run && 'measures'].filter(Boolean).join(', ') || '–';
// What a worker does now: the leases that it has started, and how many wait at it.
const kShown = 3;
function now(worker) {
  const activities = worker.activities || [];
  const queued = worker.leases - activities.length;
  if (!worker.leases) return '–';
  return [
    activities.slice(0, kShown).map((activity) => el('div', {},
        `${activity.running ? (activity.policy === 'confirm' ? 'confirms' : 'measures') : 'builds'} `,
        link(activity.operator || short(activity.workload_digest), 'records', {workload_digest: activity.workload_digest, target: worker.target}),
        ', job ', link(activity.job_id, 'job', {id: activity.job_id}), `, since ${time(activity.since_unix_ms).slice(11)}`,
        activity.attempt > 1 ? `, attempt ${activity.attempt}` : '')),
    el('div', {class: 'soft'}, [activities.length > kShown && `${activities.length - kShown} more started`, queued > 0 && `${queued} queued`].filter(Boolean).join(', ')),
  ];
}
const heat = (worker) => (worker.machine ? worker.machine.temperature_c : 0);

export function fleet(body) {
  const filter = el('input', {type: 'search', input: () => { first = 0; draw(); }});
  const state = el('select', {change: () => { first = 0; draw(); }},
      ['', 'working', 'idle', 'silent', 'draining', 'drained', 'away', 'stopped', 'gets no work'].map((name) => el('option', {value: name}, name || 'any')));
  const [totals, list, pager] = [el('p', {'aria-live': 'off'}), el('div', {}), el('p', {class: 'row'})];
  const order = {changed: () => draw()};
  let workers = [], first = 0, more = false;
  body.append(el('form', {submit: (event) => event.preventDefault()}, el('label', {}, 'Worker, host or target', filter), el('label', {}, 'State', state)), totals, list, pager);
  const columns = [
    {name: 'worker', value: (worker) => worker.id},
    {name: 'host', value: (worker) => worker.host},
    {name: 'state', value: stateOf, show: (worker) => el('span', {class: ['away', 'gets no work'].includes(stateOf(worker)) ? 'bad' : null}, stateOf(worker))},
    {name: 'does', value: does}, {name: 'now (UTC)', value: (worker) => worker.leases, show: now},
    {name: '°C', value: heat, show: (worker) => number(heat(worker), 0), right: true},
    {name: 'MHz', value: (worker) => (worker.machine ? worker.machine.frequency_mhz : 0), show: (worker) => number(worker.machine && worker.machine.frequency_mhz, 0), right: true},
    {name: 'load', value: (worker) => (worker.machine ? worker.machine.load : 0), show: (worker) => number(worker.machine && worker.machine.load, 2), right: true},
    {name: 'peak GFLOP/s', value: (worker) => worker.peak_gflops, show: (worker) => number(worker.peak_gflops), right: true},
    {name: 'target', value: (worker) => worker.target},
    {name: 'last seen (UTC)', value: (worker) => worker.last_seen_unix_ms, show: (worker) => time(worker.last_seen_unix_ms)},
    {name: 'problem', value: (worker) => worker.flagged || worker.last_error, wrap: true},
  ];
  if (mayAdminister()) {
    columns.push({name: 'action', show: (worker) => (worker.draining || worker.flagged
      ? action('Resume', `Give ${worker.id} work again?`, 'drain-worker', {id: worker.id, resume: true})
      : action('Drain', `Let ${worker.id} finish its work and give it no more?`, 'drain-worker', {id: worker.id}))});
  }
  const step = (name, by) => el('button', {type: 'button', click: () => { first += by; draw(); }}, name);
  const draw = () => {
    const words = filter.value.toLowerCase();
    const shown = workers.filter((worker) => (!state.value || stateOf(worker) === state.value) &&
        `${worker.id} ${worker.host} ${worker.target}`.toLowerCase().includes(words));
    // Sorts all of them before the page is cut.
    const column = columns[order.by];
    if (column && column.value) shown.sort((a, b) => ((x, y) => (x < y ? -1 : x > y ? 1 : 0))(column.value(a), column.value(b)) * (order.down ? -1 : 1));
    first = Math.max(0, Math.min(first, Math.floor((shown.length - 1) / kPage) * kPage));
    const part = shown.slice(first, first + kPage);
    const active = list.contains(document.activeElement) ? [...list.querySelectorAll('a, button')].indexOf(document.activeElement) : -1;
    list.replaceChildren(table(shown.length ? `Workers ${first + 1} to ${first + part.length} of ${count(shown.length)}` : 'No workers', columns, part, order));
    if (active >= 0) list.querySelectorAll('a, button')[active]?.focus();
    pager.replaceChildren(...[first > 0 && step('Previous', -kPage), first + kPage < shown.length && step('Next', kPage)].filter(Boolean));
    const states = {};
    for (const worker of workers) states[stateOf(worker)] = (states[stateOf(worker)] || 0) + 1;
    totals.textContent = `${more ? 'The first ' : ''}${counted(workers.length, 'worker')}: ${Object.entries(states).map(([name, size]) => `${count(size)} ${name}`).join(', ')}`;
  };
  return follow('fleet', {page_size: kMost}, (page) => {
    workers = page.workers;
    more = page.next_page_token !== '';
    draw();
  }, (error) => list.replaceChildren(problem(error)));
}
