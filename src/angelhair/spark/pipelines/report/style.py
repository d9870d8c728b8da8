"""How the page looks, by day and by night."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #f6f5f2; --sheet: #ffffff; --ink: #22262b; --faint: #6c737c; --rule: #e4e2dc; --grid: #edebe6;
  --one: #2f6fb0; --two: #1d9a7c; --three: #d98a1f; --four: #c6483c; --five: #7d62b8; --six: #8b95a1; --wash: 0.16;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --sheet: #1d2127; --ink: #e6e8eb; --faint: #98a1ac; --rule: #2d333b; --grid: #272c34;
    --one: #6aa9ea; --two: #45c8a5; --three: #efb058; --four: #f07f72; --five: #b19ae8; --six: #7d8894; --wash: 0.22;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 32px 20px 56px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1100px; margin: 0 auto; }
header { margin: 0 4px 20px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
header p, .note { color: var(--faint); margin: 4px 0 0; }
h2 { font-size: 15px; margin: 0 0 2px; }
.note { font-size: 13px; margin: 0 0 10px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(136px, 1fr)); gap: 12px; margin-bottom: 14px; }
.tile, section { background: var(--sheet); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: 12px 16px; }
.tile b { display: block; font-size: 25px; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { color: var(--faint); font-size: 13px; }
section { padding: 16px 18px; margin-bottom: 14px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 14px; }
.pair { margin-bottom: 14px; } .pair section { margin: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text.tick { fill: var(--faint); font-size: 11px; font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--grid); } svg .base { stroke: var(--rule); }
svg polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
svg polygon { stroke: none; opacity: var(--wash); }
svg .told rect { fill: transparent; } svg .told:hover rect { fill: var(--ink); opacity: 0.06; }
.legend { margin: 0 0 6px; font-size: 13px; color: var(--faint); }
.legend span { margin-right: 16px; } .legend span::before {
  content: ""; display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 6px;
  background: currentColor; background: var(--look);
}
.one { --look: var(--one); } .two { --look: var(--two); } .three { --look: var(--three); }
.four { --look: var(--four); } .five { --look: var(--five); } .sizes { --look: var(--five); }
svg polyline { stroke: var(--look); } svg polygon, svg circle, svg rect { fill: var(--look); }
.share0 { --look: var(--one); } .share1 { --look: var(--two); } .share2 { --look: var(--three); }
.share3 { --look: var(--five); } .share4 { --look: var(--four); } .share5, .share6, .share7 { --look: var(--six); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--faint); font-weight: 500; font-size: 13px; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; vertical-align: baseline; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.wide { white-space: normal; overflow-wrap: anywhere; }
td.name { max-width: 220px; overflow: hidden; text-overflow: ellipsis; }
td.bar { width: 45%; }
.meter { display: block; height: 8px; border-radius: 4px; background: var(--one); min-width: 2px; }
.badge { border-radius: 4px; padding: 1px 7px; font-size: 12.5px; background: var(--grid); }
.badge.bad { color: var(--four); }
"""
