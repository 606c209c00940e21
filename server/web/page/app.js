// The frame of the page: the session, and which view is shown.
import {el, get, post, problem, say, session, to} from './page.js';
import {compare, job, jobs} from './jobs.js';
import {fleet} from './fleet.js';
import {records} from './records.js';
import {kernel} from './kernel.js';
import {models} from './models.js';

// Each view fills `main` for its parameters, and returns a function that ends what it follows, or nothing.
const kViews = {
  jobs: {name: 'Jobs', show: jobs, inNav: true},
  fleet: {name: 'Fleet', show: fleet, inNav: true},
  records: {name: 'Records', show: records, inNav: true},
  models: {name: 'Learned', show: models, inNav: true},
  compare: {name: 'Compare', show: compare, inNav: true},
  job: {name: 'Job', show: job, parent: 'jobs'},
  kernel: {name: 'Kernel', show: kernel, parent: 'records'},
};

const kCode = /^#([0-9a-f]{64})$/;  // of a link
const main = document.getElementById('main');
let code = (location.hash.match(kCode) || [])[1];
let end = null;
let shown = false;

function show() {
  const [name, query] = location.hash.replace(/^#\/?/, '').split('?');
  const view = kViews[name] || kViews.jobs;
  const current = kViews[name] ? view.parent || name : 'jobs';
  if (end) end();
  document.getElementById('nav').replaceChildren(...Object.entries(kViews).filter(([, entry]) => entry.inNav)
      .map(([key, entry]) => el('a', {href: to(key), 'aria-current': key === current ? 'page' : null}, entry.name)));
  document.title = `${view.name} – Hone`;
  const title = el('h1', {}, view.name);
  const body = el('div', {});
  main.replaceChildren(title, body);
  // The content is read next, but a page that has just been opened begins at its top.
  if (shown) main.focus({preventScroll: true});
  shown = true;
  end = view.show(body, new URLSearchParams(query || ''), title) || null;
}

async function begin() {
  // The code stays in neither the address nor the history.
  if (kCode.test(location.hash)) history.replaceState(null, '', to('jobs'));
  try {
    if (code) await post('session', {code});
    code = null;
    Object.assign(session, await get('session'));
  } catch (error) {
    main.replaceChildren(el('h1', {}, 'Hone'), problem(error),
        el('p', {}, 'The command ', el('code', {}, 'hone dashboard'), ' opens this page with a new session.'));
    if (error.code === 'DEAD') setTimeout(begin, 3000);
    return;
  }
  say('');
  const name = session.name ? `${session.name}: ` : '';
  document.getElementById('caller').replaceChildren(`${name}${session.role === 'viewer' ? 'reads only' : `acts as ${session.role}`} `,
      el('button', {type: 'button', click: async () => {
        if (end) end();
        await post('end-session', {});
        location.reload();
      }}, 'End session'));
  document.getElementById('skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
  show();
}
window.addEventListener('hashchange', () => {
  if (kCode.test(location.hash)) location.reload();  // a new link in the same tab
  else if (shown && location.hash.startsWith('#/')) show();
});
begin();
