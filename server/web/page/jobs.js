// The list of jobs, one job, and two jobs side by side.
import {action, count, counted, el, facts, follow, get, latency, link, mayAct, number, percent, problem, proposedBy, seconds, table, time, to, word} from './page.js';
import {bestSoFar, chart} from './charts.js';

const kPage = 50;
const stateOf = (job) => word(job.state, 'JOB_STATE_');
const hasEnded = (job) => ['done', 'cancelled', 'failed'].includes(stateOf(job));
// What is tuned: the name of the networks, or the first line of the workload.
const nameOf = (job) => (job.network && job.network.name) || String(job.workload || '').split('\n')[0].replace(/^workload /, '') || job.id;
const latencyOf = (job) => (job.network ? job.network.latency_ns : job.best ? job.best.latency_ns : 0);
const defaultOf = (job) => (job.network ? job.network.default_latency_ns : job.default_schedule ? job.default_schedule.latency_ns : 0);

export function jobs(body, parameters) {
  const token = parameters.get('after') || '';
  const chosen = new Set();
  const list = el('div', {});
  const both = el('button', {type: 'button', disabled: true, click: () => {
    const [a, b] = chosen;
    location.hash = to('compare', {a, b});
  }}, 'Compare the two selected jobs');
  const choose = (id, checked) => {
    if (checked) chosen.add(id); else chosen.delete(id);
    both.disabled = chosen.size !== 2;
  };
  const order = {};
  const pager = el('p', {class: 'row'}, both, token && el('a', {href: to('jobs')}, 'Newest jobs'));
  const next = el('span', {});
  pager.append(next);
  body.append(pager, list);
  const columns = [
    {name: 'select', show: (job) => {
      const box = el('input', {type: 'checkbox', 'aria-label': `Select job ${job.id}`, change: (event) => choose(job.id, event.target.checked)});
      box.checked = chosen.has(job.id);
      return box;
    }},
    {name: 'job', value: (job) => job.id, show: (job) => link(job.id, 'job', {id: job.id})},
    {name: 'tunes', value: nameOf, wrap: true},
    {name: 'state', value: stateOf, show: (job) => el('span', {class: stateOf(job) === 'failed' ? 'bad' : stateOf(job) === 'done' ? 'good' : null}, stateOf(job))},
    {name: 'trials', value: (job) => job.trials, show: (job) => count(job.trials), right: true},
    {name: 'best', value: latencyOf, show: (job) => latency(latencyOf(job)), right: true},
    {name: 'target', value: (job) => job.target},
    {name: 'owner', value: (job) => job.owner || '–'},
    {name: 'created (UTC)', value: (job) => job.created_unix_ms, show: (job) => time(job.created_unix_ms)},
  ];
  return follow('jobs', {page_size: kPage, page_token: token}, (page) => {
    const had = list.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
    list.replaceChildren(table(page.jobs.length ? `${counted(page.jobs.length, 'job')}, newest first` : 'There are no jobs', columns, page.jobs, order));
    if (had) [...list.querySelectorAll('input')].find((box) => box.getAttribute('aria-label') === had)?.focus();
    next.replaceChildren(page.next_page_token ? link('Older jobs', 'jobs', {after: page.next_page_token}) : '');
  }, (error) => list.replaceChildren(problem(error)));
}

// Reads the trials of a job that `trials` does not have yet. `trials`: {points, after}
async function readCurve(id, trials) {
  for (let more = true; more;) {
    const page = await get('curve', {id, after: trials.after});
    trials.points.push(...page.points);
    more = page.more && page.after !== trials.after;
    trials.after = page.after;
  }
}
// The curve of the best so far against trials, or against the seconds since the start of the job.
function curveOf(job, trials, by) {
  if (job.network) {
    return job.network.estimates.filter((one) => one.latency_ns > 0)
        .map((one) => [by === 'time' ? one.wall_ms / 1000 : one.trials, one.latency_ns]);
  }
  const sorted = [...trials.points].sort((a, b) => (by === 'time' ? a[1] - b[1] : a[0] - b[0]));
  return bestSoFar(sorted, (trial) => (by === 'time' ? (trial[1] - job.created_unix_ms) / 1000 : trial[0] + 1));
}
function drawCurves(where, entries, by) {
  const best = Math.max(...entries.flatMap(([, points]) => points.map((point) => point[1])), 1);
  const [unit, scale] = best < 1e3 ? ['ns', 1] : best < 1e6 ? ['µs', 1e3] : best < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  where.replaceChildren(chart(entries.map(([name, points]) => ({name, points: points.map(([x, y]) => [x, y / scale])})), {
    label: `Best latency so far against ${by === 'time' ? 'seconds' : 'trials'}: ${entries.map(([name, points]) =>
        `${name} ends at ${points.length ? latency(points[points.length - 1][1]) : 'nothing'}`).join(', ')}`,
    xLabel: by === 'time' ? 'seconds since the job was created' : 'trials', yLabel: `best so far, ${unit}`, steps: true,
  }));
}
function axisChoice(changed) {
  let by = 'trials';
  const radio = (value, name) => {
    const input = el('input', {type: 'radio', name: 'axis', value, change: () => { by = value; changed(); }});
    input.checked = value === by;
    return el('label', {class: 'inline'}, input, name);
  };
  return {element: el('fieldset', {}, el('legend', {}, 'Against'), radio('trials', 'trials'), radio('time', 'time')), by: () => by};
}

function tasksOf(job, order) {
  const share = (task) => task.latency_ns * task.weights.reduce((sum, weight) => sum + weight, 0);
  const whole = job.network.tasks.reduce((sum, task) => sum + share(task), 0);
  return table(`${counted(job.network.task_count, 'task')} of the network`, [
    {name: 'task', value: (task) => task.operator, show: (task) => (task.job ? link(task.operator, 'job', {id: task.job}) : task.operator)},
    {name: 'workload', show: (task) => link(String(task.workload_digest).slice(0, 10), 'records', {workload_digest: task.workload_digest})},
    {name: 'state', value: (task) => word(task.state, 'JOB_STATE_'), show: (task) => task.error || word(task.state, 'JOB_STATE_').replace('unspecified', 'no trials')},
    {name: 'trials', value: (task) => task.trials, show: (task) => count(task.trials), right: true},
    {name: 'times', value: (task) => task.weights.reduce((a, b) => a + b, 0), right: true},
    {name: 'latency', value: (task) => task.latency_ns, show: (task) => latency(task.latency_ns), right: true},
    {name: 'share of the time', value: share, show: (task) => percent(whole > 0 ? share(task) / whole : 0), right: true},
    {name: 'default', value: (task) => task.default_latency_ns, show: (task) => latency(task.default_latency_ns), right: true},
    {name: 'GFLOP/s', value: (task) => task.gflops, show: (task) => number(task.gflops), right: true},
    {name: 'of the peak', value: (task) => task.gflops / (task.peak_gflops || Infinity), show: (task) => percent(task.gflops / (task.peak_gflops || Infinity)), right: true},
    {name: 'confirmed', value: (task) => (task.confirmed ? 'yes' : 'no')},
  ], job.network.tasks, order);
}

// What came of the schedules that other programs have proposed.
function proposersOf(job, order) {
  return table('Schedules that other programs have proposed', [
    {name: 'program', value: (one) => one.name, show: (one) => link(one.name, 'records', {job_id: job.id, proposer: one.name})},
    {name: 'accepted', value: (one) => one.accepted, show: (one) => count(one.accepted), right: true},
    {name: 'measured', value: (one) => one.measured, show: (one) => count(one.measured), right: true},
    {name: 'fastest', value: (one) => one.latency_ns || Infinity, show: (one) => latency(one.latency_ns), right: true},
  ], job.proposers, order);
}

function factsOf(job) {
  const best = latencyOf(job), first = defaultOf(job);
  return facts([
    ['State', stateOf(job), job.phase && job.phase.kind !== 'KIND_UNSPECIFIED' ? ` (${word(job.phase.kind, 'KIND_')} ${job.phase.detail})` : ''],
    ['Error', job.error && el('span', {class: 'bad'}, job.error)],
    ['Waits', job.wait_reason], ['Note', job.note],
    ['Target', job.target], ['Owner', job.owner],
    ['Created (UTC)', time(job.created_unix_ms)], ['Took', seconds(job.wall_ms)],
    ['Time left', job.left_ms == null || hasEnded(job) ? '' : seconds(job.left_ms)],
    ['Trials', count(job.trials), `, ${count(job.dropped)} dropped, ${count(job.queued)} queued, ${count(job.disturbed)} disturbed`],
    ['Outcomes', Object.entries(job.outcomes).map(([name, trials]) => `${name} ${count(trials)}`).join(', ')],
    ['Best', latency(best), first > 0 && best > 0 ? `, ${(first / best).toFixed(2)} × the default schedule` : '',
      job.best ? ` (${job.best.confirmed ? 'confirmed' : 'not confirmed'}${proposedBy(job.best.record)}) ` : ' ', job.best ? link('Show the kernel', 'kernel', {job: job.id}) : ''],
    ['Records', job.network ? '' : link('of this job', 'records', {job_id: job.id})],  // those of a network belong to its tasks
  ]);
}

export function job(body, parameters, title) {
  const id = parameters.get('id') || '';
  const [summary, actions, plot, proposers, tasks] = [el('div', {}), el('div', {class: 'row'}), el('div', {}), el('div', {}), el('div', {})];
  const trials = {points: [], after: ''};
  const [order, orderOfProposers] = [{}, {}];
  let last = null, reading = false;
  const axis = axisChoice(() => draw());
  const draw = () => { if (last) drawCurves(plot, [['best so far', curveOf(last, trials, axis.by())]], axis.by()); };
  body.append(summary, actions, el('h2', {}, 'Best so far'), axis.element, plot, proposers, tasks);
  return follow('job', {id}, async (now) => {
    last = now;
    title.textContent = nameOf(now);
    summary.replaceChildren(factsOf(now));
    const buttons = !mayAct() ? [] : hasEnded(now)
      ? (stateOf(now) === 'done' ? [] : [action('Resume', 'Resume this job?', 'resume-job', {id})])
      : [action('Cancel', 'Cancel this job now?', 'cancel-job', {id}),
        action('Stop and confirm', 'Stop the search and confirm the best candidates?', 'cancel-job', {id, confirm_finalists: true})];
    if (actions.childElementCount !== buttons.length || actions.textContent !== buttons.map((button) => button.textContent).join('')) actions.replaceChildren(...buttons);
    if (now.proposers.length) proposers.replaceChildren(el('h2', {}, 'Proposals'), proposersOf(now, orderOfProposers));
    if (now.network && now.network.tasks.length) tasks.replaceChildren(el('h2', {}, 'Tasks'), tasksOf(now, order));
    draw();
    if (now.network || reading) return;
    reading = true;
    try {
      await readCurve(id, trials);
      draw();
    } catch (error) {
      plot.replaceChildren(problem(error));
    }
    reading = false;
  }, (error) => summary.replaceChildren(problem(error)));
}

// The first x from which a curve is at most `limit`.
const reaches = (points, limit) => (points.find((point) => point[1] <= limit) || [null])[0];

export function compare(body, parameters) {
  const ids = [parameters.get('a') || '', parameters.get('b') || ''];
  const result = el('div', {});
  const fields = ids.map((id, i) => el('input', {name: 'ab'[i], value: id, required: true}));
  body.append(el('form', {submit: (event) => {
    event.preventDefault();
    location.hash = to('compare', {a: fields[0].value.trim(), b: fields[1].value.trim()});
  }}, el('label', {}, 'First job', fields[0]), el('label', {}, 'Second job', fields[1]), el('button', {}, 'Compare')),
  el('p', {class: 'soft'}, 'Two jobs can also be selected in the list of jobs.'), result);
  if (!ids[0] || !ids[1]) return null;
  const show = async () => {
    const both = await Promise.all(ids.map(async (id) => {
      const trials = {points: [], after: ''};
      const one = await get('job', {id});
      if (!one.network) await readCurve(id, trials);
      return {job: one, trials};
    }));
    const plot = el('div', {});
    const curves = (by) => both.map(({job: one, trials}) => curveOf(one, trials, by));
    const axis = axisChoice(() => draw());
    const draw = () => drawCurves(plot, both.map(({job: one}, i) => [`${'AB'[i]}: ${one.id}`, curves(axis.by())[i]]), axis.by());
    draw();
    const ends = curves('trials').map((points) => (points.length ? points[points.length - 1][1] : 0));
    const goal = Math.max(...ends);
    const rows = [
      ['tunes', ...both.map(({job: one}) => nameOf(one))], ['state', ...both.map(({job: one}) => stateOf(one))],
      ['target', ...both.map(({job: one}) => one.target)], ['trials', ...both.map(({job: one}) => count(one.trials))],
      ['took', ...both.map(({job: one}) => seconds(one.wall_ms))], ['best', ...both.map(({job: one}) => latency(latencyOf(one)))],
      ['default schedule', ...both.map(({job: one}) => latency(defaultOf(one)))],
      [`trials until ${latency(goal)}`, ...curves('trials').map((points) => reaches(points, goal) ?? '–')],
      [`seconds until ${latency(goal)}`, ...curves('time').map((points) => number(reaches(points, goal)))],
    ];
    result.replaceChildren(axis.element, plot, table('Comparison', [
      {name: 'fact', show: (row) => row[0]}, {name: 'A', show: (row) => row[1], wrap: true}, {name: 'B', show: (row) => row[2], wrap: true},
    ], rows));
    if (both[0].job.workload_digest !== both[1].job.workload_digest) result.prepend(el('p', {}, 'The two jobs tune different workloads, so their latencies cannot be compared.'));
  };
  show().catch((error) => result.replaceChildren(problem(error)));
  return null;
}
