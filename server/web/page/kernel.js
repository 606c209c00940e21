// One kernel: its schedule, its code and where it stands on the roofline.
import {action, amount, count, el, facts, get, latency, link, mayAdminister, number, percent, problem, say, table, text, time} from './page.js';
import {roofline} from './charts.js';

// What limits the kernel, as far as the roofline tells.
function limitOf({best, flops, bytes}) {
  const {peak_gflops: peak, read_gbps: rate, gflops} = best;
  if (!(peak > 0) || !(gflops > 0) || !(flops > 0) || !(bytes > 0)) return 'unknown';
  const memory = rate > 0 ? rate * flops / bytes : Infinity;
  if (memory >= peak) return `compute: ${percent(gflops / peak)} of the peak for multiply-adds`;
  if (gflops > memory) return `cache: it is faster than the memory, so its data stay in a cache; ${percent(gflops / peak)} of the peak`;
  return `memory: ${percent(gflops / memory)} of what ${rate.toFixed(1)} GB/s allow`;
}

// What was counted while the kernel ran, and what is missing and why.
function measured(found) {
  if (found.not_counted) return [el('p', {class: 'soft'}, `No counters were measured: ${found.not_counted}.`)];
  const values = [...found.ratios, ...found.counters];
  const reasons = new Map();
  for (const {name, missing} of values.filter((value) => value.missing)) reasons.set(missing, [...(reasons.get(missing) || []), name]);
  return [
    table('Measured in extra runs after the timing, for one run', [
      {name: 'Measured', show: (row) => row.name, value: (row) => row.name},
      {name: 'Value', show: (row) => amount(row.value), value: (row) => row.value, right: true},
      {name: 'Estimate', show: (row) => (row.estimate == null ? '–' : amount(row.estimate)), right: true},
      {name: 'Meaning', show: (row) => row.meaning, wrap: true},
    ], values.filter((value) => !value.missing)),
    ...[...reasons].map(([reason, names]) => el('p', {class: 'soft'}, `Missing: ${names.join(', ')}: ${reason}.`)),
  ];
}

// What the estimate says about the schedule, what was counted, and what was tried nearby: ExplainSchedule of the protocol.
export function explained(found) {
  const cost = (cycles) => (found.cycle_ns > 0 ? latency(cycles * found.cycle_ns) : `${count(Math.round(cycles))} cycles`);
  const changed = ({name, before, after}) => `${name}: ${(before || []).join(' ')} → ${(after || []).join(' ')}`;
  return [
    table(`Terms of the estimate, which is ${cost(found.estimate_cycles)}${found.learned ? ', with learned factors' : ''}`, [
      {name: 'Term', show: (term) => term.name, value: (term) => term.name}, {name: 'Meaning', show: (term) => term.meaning, wrap: true},
      {name: 'Alone', show: (term) => cost(term.cycles), value: (term) => term.cycles, right: true},
      {name: 'Gain without it', show: (term) => percent(term.gain), value: (term) => term.gain, right: true},
    ], (found.terms || []).filter((term) => term.cycles > 0)),
    ...measured(found),
    table(`Tried nearby: ${count(found.near_count || 0)} schedules of ${count(found.same_space || 0)} in its design space differ in one or two decisions, ${count(found.near_failed || 0)} more failed`, [
      {name: 'Latency', show: (tried) => latency(tried.latency_ns), value: (tried) => tried.latency_ns, right: true},
      {name: 'Ratio', show: (tried) => number(tried.ratio, 2), value: (tried) => tried.ratio, right: true},
      {name: 'Other decisions', show: (tried) => (tried.changes || []).map(changed).join('; '), wrap: true},
    ], found.near || []),
  ];
}

function show(body, title, kernel) {
  const {best} = kernel;
  const {record} = best;
  const {result} = record;
  const build = result.facts || {};
  title.textContent = `${record.operator} on ${record.target}`;
  const task = {workload_digest: record.workload_digest, target: record.target, tolerance: record.tolerance};
  const explanation = el('div', {id: 'explanation'});
  get('explain', {record: record.id}).then((found) => explanation.replaceChildren(
      ...(found.problem ? [el('p', {class: 'soft'}, `No explanation: ${found.problem}`)] : explained(found))),
      (error) => explanation.replaceChildren(el('p', {class: 'soft'}, `No explanation: ${error.message}`)));
  const code = [['CUDA or OpenCL source', kernel.source], ['PTX', kernel.assembly]].filter((entry) => entry[1]);
  body.replaceChildren(
      facts([
        ['Latency', latency(best.latency_ns || result.latency_ns), best.confirmed ? ' (confirmed' : ' (not confirmed', best.processes ? ` in ${best.processes} processes)` : ')',
          best.disturbed ? ', disturbed by other work' : ''],
        ['Speed', `${number(best.gflops)} GFLOP/s, ${percent(best.peak_gflops > 0 ? best.gflops / best.peak_gflops : 0)} of the peak`],
        ['Tolerance', record.tolerance || 'strict'], ['Largest error', `${result.max_error > 0 ? number(result.max_error, 3) : 0} of the bound`],
        ['Measured (UTC)', time(record.created_unix_ms)], ['Spread', percent(result.dispersion)],
        ['Environment', record.environment && [record.environment.cpu, record.environment.compiler, record.environment.os].filter(Boolean).join(', ')],
        ['Job', record.job_id && link(record.job_id, 'job', {id: record.job_id})],
        ['Proposed by', record.proposer],
        ['Records', link('of this workload', 'records', {workload_digest: record.workload_digest, target: record.target})],
        ['Pinned', best.pinned_unix_ms > 0 ? `since ${time(best.pinned_unix_ms)}${best.pinned_by ? ` by ${best.pinned_by}` : ''}` : ''],
      ]),
      mayAdminister() ? el('p', {class: 'row'}, best.pinned_unix_ms > 0
        ? action('Unpin', 'Let jobs replace this kernel again?', 'unpin-best', task, () => setTimeout(() => location.reload(), 500))
        : action('Pin', 'Keep this kernel as the best, whatever jobs find?', 'pin-best', task, () => setTimeout(() => location.reload(), 500))) : '',
      el('h2', {}, 'What limits it'), el('p', {id: 'limits'}, limitOf(kernel)), roofline(kernel), explanation,
      el('h2', {}, 'Workload'), text('Workload', best.workload),
      el('h2', {}, 'Program'), kernel.program ? text('Program', kernel.program) : el('p', {class: 'soft'}, 'Only published kernels have their program in the store.'),
      el('h2', {}, 'Trace, with its decisions'), best.trace ? text('Trace', best.trace) : el('p', {class: 'soft'}, 'unknown'),
      el('h2', {}, 'Code'),
      facts([['Size', build.code_bytes > 0 ? `${build.code_bytes} bytes` : ''], ['Reloads from the stack in the innermost loop', build.spills],
        ['Loads per multiply-add', number(build.loads_per_fma, 2)], ['Workspace', build.workspace_bytes > 0 ? `${build.workspace_bytes} bytes` : ''],
        ['Compiled in', build.compile_ms > 0 ? `${number(build.compile_ms)} ms` : ''], ['Artifact', result.artifact_digest]]),
      ...(code.length ? code.flatMap(([name, content]) => [el('h2', {}, name), text(name, content)])
        : [el('p', {}, 'The assembly of a kernel for a CPU is printed by ', el('code', {}, 'hone show OP … --code'), '.')]));
  say('');
}

export function kernel(body, parameters, title) {
  body.textContent = 'Reading …';
  get('kernel', Object.fromEntries(parameters)).then((found) => show(body, title, found), (error) => body.replaceChildren(problem(error)));
  return null;
}
