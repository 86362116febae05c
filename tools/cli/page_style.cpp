// SPDX-License-Identifier: Apache-2.0
// How the page of an engine looks, and what its script adds: the search, lanes that stand out, dark or light.
#include "page_parts.h"

namespace lathe::cli {

const std::string_view kPageStyle = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #5b6570; --line: #d8dde3; --raised: #f4f6f8;
  --link: #0b62c4; --k0: #2f6fd0; --k1: #e0782c; --k2: #2f9e58; --k3: #c23b52; --k4: #8458c4; --k5: #12929c;
  --k6: #b0851a; --k7: #c8559b; --k8: #8a939c; }
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) { --back: #14171b; --text: #e4e8ec; --soft: #9aa5b1;
  --line: #333a42; --raised: #1d2228; --link: #74b0ff; --k0: #5b97f0; --k1: #f09650; --k2: #55bf7c; --k3: #e66a7e;
  --k4: #a884e6; --k5: #3cb8c2; --k6: #d1a83f; --k7: #e480bb; --k8: #a0a9b2; } }
:root[data-theme=dark] { color-scheme: dark; --back: #14171b; --text: #e4e8ec; --soft: #9aa5b1; --line: #333a42;
  --raised: #1d2228; --link: #74b0ff; --k0: #5b97f0; --k1: #f09650; --k2: #55bf7c; --k3: #e66a7e; --k4: #a884e6;
  --k5: #3cb8c2; --k6: #d1a83f; --k7: #e480bb; --k8: #a0a9b2; }
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
header { display: flex; align-items: baseline; gap: 16px; padding: 16px 24px 0; }
header h1 { font-size: 20px; margin: 0; overflow-wrap: anywhere; }
header p { margin: 0; color: var(--soft); overflow-wrap: anywhere; flex: 1; }
main { padding: 8px 24px 64px; max-width: 1500px; margin: 0 auto; }
h2 { font-size: 16px; margin: 32px 0 8px; }
h3 { font-size: 16px; margin: 0 32px 12px 0; }
a { color: inherit; text-decoration: none; }
a:hover { color: var(--link); text-decoration: underline; }
.note, small { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 8px; }
.card { background: var(--raised); border-radius: 6px; padding: 8px 14px; }
.card span { display: block; color: var(--soft); font-size: 12px; }
.card b { font-size: 16px; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12px; }
th, td { padding: 3px 10px; white-space: nowrap; }
td { border-top: 1px solid var(--line); }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.wrap { white-space: normal; overflow-wrap: anywhere; }
.bar { display: flex; height: 14px; border-radius: 4px; overflow: hidden; margin-bottom: 8px; background: var(--raised); }
.bar i, .share { background: var(--fill); }
.share { display: block; height: 10px; border-radius: 2px; min-width: 1px; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; background: var(--fill); margin-right: 6px; }
.steps { position: relative; min-width: 1000px; }
.steps table { table-layout: fixed; width: 100%; }
.steps tr { height: 26px; }
.steps th, .steps td { padding: 0 6px; height: 26px; overflow: hidden; text-overflow: ellipsis;
  line-height: 26px; border: 0; }
.steps td > a { display: block; height: 26px; overflow: hidden; text-overflow: ellipsis; }
.steps small { line-height: 1; }
.steps td { box-shadow: inset 0 1px var(--line); }
.steps tr:hover td, tr.found td { background: var(--raised); }
.steps tr.other td { opacity: .25; }
.steps .n { padding-right: 10px; }
svg.lanes { position: absolute; left: 44px; top: 26px; z-index: 1; pointer-events: none; }
.lanes path { fill: none; stroke: var(--soft); stroke-opacity: .55; stroke-width: 1.5; pointer-events: stroke; }
.lanes path.lit { stroke: var(--k1); stroke-opacity: 1; stroke-width: 2.5; }
.lanes circle { fill: var(--text); }
.chart { width: 100%; max-width: 1100px; background: var(--raised); border-radius: 6px; }
.chart text { fill: var(--soft); font-size: 11px; paint-order: stroke; stroke: var(--raised); stroke-width: 4px; }
.chart .mid { text-anchor: middle; }
.chart .end { text-anchor: end; }
.grid { stroke: var(--line); }
.roof { stroke: var(--text); stroke-width: 1.5; stroke-opacity: .7; }
.chart circle, .chart rect { fill: var(--fill); fill-opacity: .65; stroke: var(--back); stroke-width: .5; }
.chart circle:hover, .chart rect:hover { fill-opacity: 1; }
.k0 { --fill: var(--k0); } .k1 { --fill: var(--k1); } .k2 { --fill: var(--k2); } .k3 { --fill: var(--k3); }
.k4 { --fill: var(--k4); } .k5 { --fill: var(--k5); } .k6 { --fill: var(--k6); } .k7 { --fill: var(--k7); }
.k8 { --fill: var(--k8); }
aside { display: none; }
aside:target { display: block; position: fixed; z-index: 2; top: 0; right: 0; bottom: 0; width: min(560px, 92vw);
  overflow: auto; padding: 20px 24px; background: var(--back); border-left: 1px solid var(--line);
  box-shadow: -8px 0 24px rgb(0 0 0 / .18); overflow-wrap: anywhere; }
aside .close { position: absolute; top: 12px; right: 16px; font-size: 24px; }
dt { color: var(--soft); font-size: 12px; margin-top: 10px; }
dd { margin: 0; }
dd ul { margin: 0; padding-left: 18px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font-size: 12px; }
p { margin: 4px 0 8px; }
button, input { font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 4px; padding: 3px 8px; }
)css";

const std::string_view kPageScript = R"js(
const root = document.documentElement, theme = document.getElementById('theme');
theme.hidden = false;
theme.onclick = () => {
  const dark = (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) == 'dark';
  root.dataset.theme = dark ? 'light' : 'dark';
};
const rows = [...document.querySelectorAll('#steps-table tr[data-step]')];
const lanes = [...document.querySelectorAll('.lanes path')];
const light = step => lanes.forEach(lane => lane.classList.toggle('lit', lane.dataset.steps.includes(` ${step} `)));
rows.forEach(row => { row.onmouseenter = () => light(row.dataset.step); row.onmouseleave = () => light('none'); });
const search = document.getElementById('search'), box = search.querySelector('input');
search.hidden = false;
let found = [], at = -1;
box.oninput = () => {
  const wanted = box.value.toLowerCase();
  found = wanted ? rows.filter(row => row.textContent.toLowerCase().includes(wanted)) : [];
  rows.forEach(row => row.classList.toggle('other', wanted != '' && !found.includes(row)));
  document.getElementById('found').textContent = wanted ? `${found.length} steps; Enter goes from one to the next` : '';
  at = -1;
};
box.onkeydown = event => {
  if (event.key != 'Enter' || !found.length) return;
  at = (at + 1) % found.length;
  found[at].scrollIntoView({block: 'center'});
};
onkeydown = event => { if (event.key == 'Escape' && location.hash.startsWith('#s')) location.hash = '#r' + location.hash.slice(2); };
)js";

}  // namespace lathe::cli
