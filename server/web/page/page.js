// What all views use: elements, requests, texts of values, tables.

// Makes an element. Texts become text nodes, never markup. `attributes` with functions are listeners.
export function el(name, attributes, ...children) {
  const svg = ['svg', 'path', 'line', 'text', 'circle', 'title', 'g'].includes(name);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false)
      .map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

export const session = {role: '', csrf: ''};
export const mayAct = () => session.role === 'client' || session.role === 'admin';
export const mayAdminister = () => session.role === 'admin';

// The address of a view with its parameters.
export function to(view, parameters) {
  const query = new URLSearchParams(Object.entries(parameters || {}).filter(([, value]) => value !== '' && value != null));
  return `#/${view}${query.size ? '?' + query : ''}`;
}
export const link = (text, view, parameters) => el('a', {href: to(view, parameters)}, text);

export function say(text) {
  const status = document.getElementById('status');
  if (status.textContent !== text) status.textContent = text;
}
const kDead = 'The server does not answer. The page tries again every few seconds.';

export class ServerError extends Error {
  constructor(message, code) { super(message); this.code = code; }
}
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    say(kDead);
    throw new ServerError(kDead, 'DEAD');
  }
  if (document.getElementById('status').textContent === kDead) say('');
  const body = await response.json();
  if (response.ok) return body;
  if (response.status === 401) say(body.error);
  throw new ServerError(body.error, body.code);
}
const pathOf = (path, parameters) => `/api/${path}?${new URLSearchParams(parameters || {})}`;
export const get = (path, parameters) => ask(pathOf(path, parameters));
export const post = (path, body) => ask(`/api/${path}`, {
  method: 'POST', headers: {'content-type': 'application/json', 'x-hone-csrf': session.csrf || '-'}, body: JSON.stringify(body)});

// Calls `changed` with what a path returns, now and after every change, until the returned function is called.
export function follow(path, parameters, changed, failed) {
  const source = new EventSource(pathOf('events', {path: `/api/${path}`, ...parameters}));
  source.addEventListener('change', (event) => { say(''); changed(JSON.parse(event.data)); });
  source.addEventListener('failed', (event) => {
    source.close();
    const body = JSON.parse(event.data);
    if (body.code === 'UNAUTHENTICATED') say(body.error);
    failed(new ServerError(body.error, body.code));
  });
  source.onerror = () => {
    if (source.readyState === EventSource.CONNECTING) return say(kDead);
    // Refused: the answer says why.
    get(path, parameters).then(changed, failed);
  };
  return () => source.close();
}

export const count = (value) => Number(value).toLocaleString('en-US');
// "1 job", "2 jobs"
export const counted = (value, name) => `${count(value)} ${name}${Number(value) === 1 ? '' : 's'}`;
export const proposedBy = (record) => (record && record.proposer ? `, proposed by ${record.proposer}` : '');
export function latency(ns) {
  if (!(ns > 0)) return '–';
  const [unit, scale] = ns < 1e3 ? ['ns', 1] : ns < 1e6 ? ['µs', 1e3] : ns < 1e9 ? ['ms', 1e6] : ['s', 1e9];
  return `${(ns / scale).toPrecision(4)} ${unit}`;
}
export const number = (value, digits = 1) => (value > 0 ? Number(value).toFixed(digits) : '–');
// "812", "12.5 k", "3.071 G"
export function amount(value) {
  const [unit, scale] = value < 1e4 ? ['', 1] : value < 1e6 ? [' k', 1e3] : value < 1e9 ? [' M', 1e6] : value < 1e12 ? [' G', 1e9] : [' T', 1e12];
  return `${Number((value / scale).toPrecision(4))}${unit}`;
}
export const percent = (share) => (share > 0 ? `${(100 * share).toFixed(1)} %` : '–');
export const time = (unixMs) => (unixMs > 0 ? new Date(unixMs).toISOString().slice(0, 19).replace('T', ' ') : '–');
export function seconds(ms) {
  const whole = Math.round(ms / 1000);
  return whole >= 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${(ms / 1000).toFixed(1)} s`;
}
// "JOB_STATE_RUNNING" → "running"
export const word = (name, prefix) => String(name || '').replace(prefix, '').toLowerCase().replaceAll('_', ' ');
export const short = (digest) => String(digest || '').slice(0, 10);

export const facts = (rows) => el('dl', {}, rows.filter((row) => row && row[1] != null && row[1] !== '')
    .map(([name, ...value]) => [el('dt', {}, name), el('dd', {}, ...value)]));
export const scroll = (label, ...content) => el('div', {class: 'scroll', role: 'region', 'aria-label': label, tabindex: 0}, ...content);
export const text = (label, content) => el('pre', {tabindex: 0, role: 'region', 'aria-label': label}, content);
export const problem = (error) => el('p', {class: 'bad', role: 'alert'}, error.message);

// A table. Columns: {name, value(row), show(row), right, wrap, order}; those with a value can be sorted by. The order is kept in
// `state`, so that a new table of the same view has it, too. If `state` has a function `changed`, it draws the new order. If it
// has `orders`, the server has sorted the rows, and only columns with one of these orders can be sorted by.
export function table(caption, columns, rows, state = {}) {
  const box = scroll(caption);
  const sortable = (entry) => (state.orders ? state.orders.includes(entry.order) : entry.value);
  const draw = () => {
    const column = state.orders ? null : columns[state.by];
    const sorted = column ? [...rows].sort((a, b) => {
      const [x, y] = [column.value(a), column.value(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
    }) : rows;
    box.replaceChildren(el('table', {}, el('caption', {}, el('span', {}, caption)),
        el('thead', {}, el('tr', {}, columns.map((entry, i) => el('th', {
          scope: 'col', class: entry.right ? 'right' : null,
          'aria-sort': state.by === i ? (state.down ? 'descending' : 'ascending') : null,
        }, sortable(entry) ? el('button', {type: 'button', click: () => {
          state.down = state.by === i && !state.down;
          state.by = i;
          if (state.changed) return state.changed();
          draw();
          box.querySelectorAll('th')[i].querySelector('button').focus();
        }}, entry.name, state.by === i ? (state.down ? ' ▼' : ' ▲') : '') : entry.name)))),
        el('tbody', {}, sorted.map((row) => el('tr', {}, columns.map((entry) => {
          const shown = entry.show ? entry.show(row) : entry.value(row);
          return el('td', {class: entry.right ? 'right' : entry.wrap ? 'wrap' : null}, shown);
        }))))));
  };
  draw();
  return box;
}

// An action of an operator, which asks before it acts.
export function action(name, question, path, body, done) {
  return el('button', {type: 'button', click: async () => {
    if (!window.confirm(question)) return;
    try {
      await post(path, body);
      say(`${name}: done`);
      if (done) done();
    } catch (error) {
      say(`${name}: ${error.message}`);
    }
  }}, name);
}
