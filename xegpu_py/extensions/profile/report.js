const tabs = [...document.querySelectorAll('[role=tab]')], panels = [...document.querySelectorAll('[role=tabpanel]')];
function show(n) { tabs.forEach((t, i) => { t.setAttribute('aria-selected', i === n); t.tabIndex = i === n ? 0 : -1; }); panels.forEach((p, i) => p.hidden = i !== n); window.dispatchEvent(new Event('resize')); }
tabs.forEach((t, i) => { t.onclick = () => show(i); t.onkeydown = e => { const d = {ArrowRight: 1, ArrowLeft: -1}[e.key]; if (d) { const n = (i + d + tabs.length) % tabs.length; show(n); tabs[n].focus(); } }; });
function choose(line) {
  const key = line.dataset.key; document.querySelectorAll('.line.on').forEach(l => l.classList.remove('on'));
  document.querySelectorAll('.code').forEach(pane => { const own = [...pane.querySelectorAll('.line')].filter(l => l.dataset.key === key); own.forEach(l => l.classList.add('on'));
    if (own.length && !pane.contains(line)) pane.scrollTop = own[0].offsetTop - pane.offsetTop - pane.clientHeight / 3; });
}
document.querySelectorAll('.line[data-key]').forEach(l => l.onclick = () => choose(l));
document.querySelectorAll('.code').forEach(pane => pane.onkeydown = e => {
  const d = {ArrowDown: 1, ArrowUp: -1}[e.key]; if (!d) return; e.preventDefault();
  const own = [...pane.querySelectorAll('.line[data-key]')], at = own.findIndex(l => l.classList.contains('on'));
  const next = own[Math.min(Math.max(at + d, 0), own.length - 1)]; if (next) { choose(next); next.scrollIntoView({block: 'nearest'}); } });
document.getElementById('theme').onclick = () => { const root = document.documentElement, dark = root.classList.contains('dark') || (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches); root.classList.toggle('dark', !dark); root.classList.toggle('light', dark); };
if (matchMedia('(prefers-color-scheme: dark)').matches) document.documentElement.classList.add('dark');
// The memory maps: calls a function with the cell, the part of the workgroups and the number of each entry of a slice of time.
function eachTouch(map, entries, time, visit) {
  const {keys, times} = entries.data;
  for (let i = 0; i < keys.length; i++) {
    const cell = keys[i] % map.cells, rest = (keys[i] - cell) / map.cells, part = rest % map.parts;
    if (time.value < 0 || time.value === (rest - part) / map.parts) visit(cell, part, times[i]);
  }
}
function showTouches(map, entries, time, chosen, source) {
  const image = source.data.image[0]; image.fill(0);
  eachTouch(map, entries, time, (cell, part, times) => { if (chosen.value < 0 || chosen.value === part) image[cell] += times; });
  source.change.emit();
}
function describeCell(map, at, entries, time) {
  const column = Math.floor(at.x), row = Math.floor(at.y), own = row * map.columns + column, found = [];
  eachTouch(map, entries, time, (cell, part, times) => { if (cell === own) found[part] = (found[part] || 0) + times; });
  const listed = Object.entries(found).sort((a, b) => b[1] - a[1]), place = Math.floor(row * map.steps[1]) + Math.floor(column * map.steps[0]);
  const name = part => map.each === 1 ? part : `${Math.floor(part * map.each)}...`;
  const first = listed.slice(0, 8).map(([part, times]) => `${name(part)}: ${times} times`).join(', ');
  return `from byte ${64 * place}, by workgroup ${first}${listed.length > 8 ? ` and ${listed.length - 8} more` : ''}`;
}
// The maps by line: four numbers of each line, which are unpacked when they are first needed.
const tables = {}, opened = {};
async function unpack(map, source) {
  const bytes = () => new Blob([Uint8Array.from(atob(source.tags[0]), c => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream('deflate'));
  return tables[map.name] = new Int32Array(await (opened[map.name] ??= new Response(bytes()).arrayBuffer()));
}
const lineAt = (map, window, row, column) => ((Math.floor(window.value / map.across) * map.rows + row) * map.pitch) + window.value % map.across * map.columns + column;
async function showLines(map, window, source) {
  const numbers = await unpack(map, source), image = source.data.image[0], count = numbers.length / 4;
  for (let row = 0; row < map.rows; row++) for (let column = 0; column < map.columns; column++) {
    const line = lineAt(map, window, row, column), inside = line < count && window.value % map.across * map.columns + column < map.pitch;
    image[row * map.columns + column] = inside ? numbers[line] : 0;
  }
  source.change.emit();
}
function describeLine(map, window, source, at) {
  const numbers = tables[map.name]; if (!numbers) { unpack(map, source); return '...'; }
  const line = lineAt(map, window, Math.floor(at.y), Math.floor(at.x)), count = numbers.length / 4, [times, groups, first, last] = [0, 1, 2, 3].map(n => numbers[n * count + line]);
  return `line ${line}, from byte ${64 * line}: ` + (!times ? 'not accessed' : `${times} times by ${groups === 1 ? `workgroup ${first}` : `${groups} workgroups, ${first} to ${last}`}`);
}
// Plots take their sizes before their views are hidden.
window.addEventListener('load', () => setTimeout(() => show(0), 50));
