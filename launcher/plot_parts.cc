#include <kolo/launcher/plot_parts.h>

namespace kolo::launcher {

// The first five colours are Okabe and Ito's, which stay apart for colour-blind readers. The other ones are
// each as far from those before as a contrast of 3 to 1 with the ground allows (CIEDE2000, at least 18).
const char kPlotStyle[] = R"(<style>
:root { color-scheme: light dark; --ground: #fcfcfb; --card: #ffffff; --ink: #1f2328; --soft: #656d76; --line: #d8dee4;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7; --c4: #b07d00; --c5: #690096;
  --c6: #b4003c; --c7: #005a00; --c8: #878787; --c9: #004b4b; --c10: #965aff; --c11: #4b3c2d; }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e6e9ec; --soft: #9aa4ae;
  --line: #353b42; --c0: #56b4e9; --c1: #ff9a4d; --c2: #3dcfa0; --c3: #e59acb; --c4: #f2c14e; --c5: #8778f0;
  --c6: #ff3c4b; --c7: #78960f; --c8: #e1e1e1; --c9: #2d9696; --c10: #a5f000; --c11: #968778; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 20px 16px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
main { max-width: 1240px; margin: 0 auto; }
h1 { font-size: 1.25rem; margin: 0 0 4px; } h2 { font-size: .95rem; margin: 0 0 4px; font-weight: 600; }
h2 small, .notes, figcaption { font-weight: 400; color: var(--soft); font-size: .82rem; }
.notes { margin: 0 0 14px; padding: 0; list-style: none; overflow-wrap: anywhere; }
.runs { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 14px; padding: 0; list-style: none; overflow-wrap: anywhere; }
.runs small { color: var(--soft); }
.key { display: inline-block; width: 26px; height: 10px; margin-right: 6px; vertical-align: baseline; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 14px; }
figure { position: relative; margin: 0; padding: 12px; max-width: 420px; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; break-inside: avoid; }
figure > svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
figure > svg:focus { outline: none; } figure > svg:focus-visible { outline: 1px solid var(--soft); outline-offset: 3px; }
svg text { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .axis, svg .guide { stroke: var(--soft); stroke-width: 1; }
svg polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
svg .bad { fill: none; stroke-width: 2; } svg .lost { stroke-width: 1.5; stroke-dasharray: 1 3; }
.tip { position: absolute; top: 40px; z-index: 1; max-width: 70%; padding: 6px 9px; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; box-shadow: 0 2px 8px #0004; font-size: .8rem; line-height: 1.4; pointer-events: none; }
.tip p { display: flex; gap: 7px; margin: 0; } .tip p:first-child { color: var(--soft); }
.tip i { flex: none; width: 10px; height: 10px; margin-top: 5px; border-radius: 2px; } .tip span { flex: auto; overflow-wrap: anywhere; }
.tip b { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tip small { color: var(--soft); white-space: nowrap; }
table { border-collapse: collapse; margin-top: 18px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--line); font-weight: 400; vertical-align: top; }
th:first-child { text-align: left; overflow-wrap: anywhere; min-width: 6em; } thead th { color: var(--soft); }
td strong, td small { display: block; white-space: nowrap; } td small { color: var(--soft); }
.table { overflow-x: auto; }
@media print { body { padding: 0; background: #fff; } figure { border-color: #ccc; } .tip { display: none; }
  .charts { grid-template-columns: 1fr 1fr; } .table { overflow: visible; } table { font-size: .8rem; } }
</style>
)";

// Without the script the charts are whole. It shows, for the x nearest to the pointer, a tap or the arrow
// keys, the values of all curves.
const char kPlotScript[] = R"(<script>
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg"), axis = svg.querySelector(".axis");
  const left = +axis.getAttribute("x1"), right = +axis.getAttribute("x2"), [low, high] = svg.dataset.x.split(" ").map(Number);
  const curves = [...svg.querySelectorAll("g")].map(g => ({ name: g.dataset.name, color: g.dataset.color,
    points: g.dataset.points.split(" ").map(point => point.split(",").map(Number)) }));
  const places = [...new Set(curves.flatMap(curve => curve.points.map(point => point[0])))].sort((a, b) => a - b);
  const nearest = (xs, x) => xs.reduce((best, at, i) => Math.abs(at - x) < Math.abs(xs[best] - x) ? i : best, 0);
  const short = value => Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value).replace("Infinity", "∞");
  const guide = axis.cloneNode(), tip = document.createElement("div");
  guide.setAttribute("class", "guide"); guide.setAttribute("y1", 18);
  tip.className = "tip"; tip.setAttribute("role", "status");
  let shown = -1;
  const add = (row, tag, text) => { const part = row.appendChild(document.createElement(tag)); part.textContent = text; return part; };
  const hide = () => { shown = -1; tip.remove(); guide.remove(); };
  const show = index => {
    shown = Math.min(Math.max(index, 0), places.length - 1);
    const x = places[shown], share = (x - low) / (high - low);
    tip.replaceChildren();
    add(tip, "p", svg.dataset.unit + " " + +x.toFixed(3));
    for (const curve of curves) {
      const [at, value] = curve.points[nearest(curve.points.map(point => point[0]), x)], row = add(tip, "p", "");
      add(row, "i", "").style.background = curve.color;
      add(row, "span", curve.name); add(row, "b", short(value));
      if (at !== x) add(row, "small", "at " + +at.toFixed(3));
    }
    tip.style.left = share > .5 ? "12px" : "auto"; tip.style.right = share > .5 ? "auto" : "12px";
    for (const end of ["x1", "x2"]) guide.setAttribute(end, left + share * (right - left));
    figure.append(tip); svg.append(guide);
  };
  const point = event => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    show(nearest(places, low + (at - left) / (right - left) * (high - low)));
  };
  svg.querySelectorAll("g > title").forEach(title => title.remove());
  svg.tabIndex = 0;
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const to = { ArrowLeft: (shown < 0 ? places.length : shown) - 1, ArrowRight: shown + 1, Home: 0, End: places.length - 1 }[event.key];
    if (to !== undefined) { show(to); event.preventDefault(); }
    if (event.key === "Escape") hide();
  });
  document.addEventListener("pointerdown", event => { if (!svg.contains(event.target)) hide(); });
}
</script>
)";

}  // namespace kolo::launcher
