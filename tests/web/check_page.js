// What an accessibility checker looks for, in the page as it is now: returns a list of problems. It is the body of a function.
const problems = [];
const say = (what, element) => problems.push(`${what}: ${element ? element.outerHTML.slice(0, 120) : ''}`);
const all = (selector) => [...document.querySelectorAll(selector)];
const visible = (element) => element.checkVisibility();
const nameOf = (element) => (element.getAttribute('aria-label') || [...(element.labels || [])].map((label) => label.textContent).join(' ') ||
    element.textContent || element.title || '').trim();

if (!document.documentElement.lang) say('no language');
if (!document.title) say('no title');
if (all('main').length !== 1 || all('h1').length !== 1) say('not one main and one h1');
for (const element of all('a[href], button, input, select')) if (visible(element) && !nameOf(element)) say('no name', element);
for (const element of all('[role=region], [role=img], nav')) if (!element.getAttribute('aria-label')) say('no label', element);
for (const element of all('th')) if (element.getAttribute('scope') !== 'col') say('header without scope', element);
for (const table of all('table')) if (!table.caption || !table.caption.textContent) say('no caption', table);
const ids = all('[id]').map((element) => element.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) say(`id ${id} twice`);
let level = 0;
for (const heading of all('h1, h2, h3')) {
  if (+heading.tagName[1] > level + 1) say('level of heading skipped', heading);
  level = +heading.tagName[1];
}
for (const element of all('dl')) {
  if ([...element.children].some((child) => !['DT', 'DD'].includes(child.tagName))) say('odd child of dl', element);
}
for (const element of all('[tabindex]')) if (element.tabIndex > 0) say('positive tabindex', element);
// What scrolls can be reached with the keyboard.
for (const element of all('.scroll, pre')) if (element.tabIndex !== 0) say('cannot be focused', element);
if (document.documentElement.scrollWidth > window.innerWidth + 1) say(`the page is ${document.documentElement.scrollWidth} wide, the window ${window.innerWidth}`);

const channels = (color) => color.match(/[\d.]+/g).map(Number);
const luminance = (color) => {
  const [r, g, b] = channels(color).slice(0, 3).map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    const parts = channels(color);
    if (parts.length < 4 || parts[3] > 0) return color;
  }
  return 'rgb(255, 255, 255)';
};
for (const element of all('body *')) {
  if (!visible(element) || ![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
  const style = getComputedStyle(element);
  const color = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
  const [a, b] = [luminance(color), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) say(`contrast ${contrast.toFixed(2)}`, element);
}
return problems;
