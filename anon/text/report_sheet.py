"""The style sheet of published reports: what the report has as staff write it, and what a reader's program shows it in.

One text for both, so that a report brings no sheet of its own: a sheet could hide or move what stands around it.
"""

from typing import Final

SHEET: Final = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; \
background: #fff; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .2rem .6rem .2rem 0; \
vertical-align: top; }
th { border-bottom: 1px solid #999; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; } svg { display: block; width: 100%; height: 1rem; }
.bar { fill: #3a6ea5; } .whisker { stroke: currentColor; stroke-width: 1; vector-effect: non-scaling-stroke; } \
td.chart { width: 40%; min-width: 5rem; } td.n { white-space: nowrap; }
svg.chart { height: auto; max-width: 100%; width: auto; } .side { display: flex; flex-wrap: wrap; gap: 1.5rem; } \
.wide { overflow-x: auto; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 0; } code { overflow-wrap: anywhere; } .wide td { min-width: 4.5rem; \
} .wide td > code { display: block; min-width: 13rem; } .wide td:nth-child(2):not(.n) { min-width: 11rem; } .wide \
td.n { min-width: 0; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
dl.found { border-left: 4px solid #3a6ea5; padding-left: 1rem; } details > summary { cursor: pointer; } li.sub { \
margin-left: 1.5rem; } td.n + td, th.n + th { padding-left: 1rem; }
table.facts { width: auto; } table.facts th { border: 0; font-weight: 400; padding-right: 2rem; } table.facts td { \
font-weight: 600; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #16181b; } .bar { fill: #6fa3d8; } }
@page { size: A4; margin: 16mm 15mm; @bottom-center { content: counter(page); font: 8pt sans-serif; } }
@media print { body { max-width: none; margin: 0; padding: 0; font-size: 10pt; color: #000; background: #fff; } \
table { font-size: 8.5pt; } h2 { margin-top: 1.6rem; }
  .wide { overflow: visible; } .wide td > code, .wide td:nth-child(2):not(.n) { min-width: 0; } .wide td > code { \
font-size: 7.5pt; } figure, tr { break-inside: avoid; } figure { margin: .8rem 0; } h2, h3 { break-after: avoid; } \
details::details-content { content-visibility: visible; } }
"""
