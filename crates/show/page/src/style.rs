//! The style of the page: light and dark, on paper, from 320 pixels on. The colours of series are
//! those of Okabe and Ito, which people with colour-blindness can tell apart; lines differ by their
//! dashes, too.

pub(crate) const CSS: &str = "
:root{--bg:#fff;--fg:#1b1b1b;--soft:#5c5c5c;--line:#d5d5d5;--card:#f7f7f7;--good:#00694b;--bad:#a62c00;--warn:#7a5200;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#8a6d00;--c5:#3f8fbf;--heat:#0072b2;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--bg:#161616;--fg:#ececec;--soft:#a8a8a8;--line:#3d3d3d;--card:#202020;
--good:#4cc79f;--bad:#ff8f66;--warn:#f0c040;--c0:#56b4e9;--c1:#ff8f3f;--c2:#2fc79a;--c3:#e59cc4;--c4:#f0e442;--c5:#8fd0ff;--heat:#7cc7f2}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1560px;padding:16px;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.05rem;margin:.2em 0}p{margin:.35em 0}h1,h2{overflow-wrap:anywhere}
header{border-bottom:1px solid var(--line);padding-bottom:12px;margin-bottom:16px}
.verdict{font-size:1.15rem;font-weight:600}.good{color:var(--good)}.open{color:var(--warn)}.bad{color:var(--bad)}.soft,footer{color:var(--soft)}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:16px}
section{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:12px;min-width:0}
figure{margin:8px 0}svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font:13px system-ui,sans-serif;fill:var(--fg)}svg .soft{fill:var(--soft)}
svg .over{paint-order:stroke;stroke:var(--card);stroke-width:6px}
.grid{stroke:var(--line);stroke-width:1}.frame{stroke:var(--soft);stroke-width:1;fill:none}
.stage{stroke:var(--soft);stroke-width:1;stroke-dasharray:2 3}.warm{fill:var(--soft);opacity:.16}
.still{fill:var(--bad);opacity:.3}.own{fill:var(--soft);opacity:.4}
.l{fill:none;stroke-width:1.8}.l0{stroke:var(--c0)}.l1{stroke:var(--c1);stroke-dasharray:7 3}
.l2{stroke:var(--c2);stroke-dasharray:2 2}.l3{stroke:var(--c3);stroke-dasharray:9 3 2 3}
.l4{stroke:var(--c4);stroke-dasharray:4 4}.l5{stroke:var(--c5);stroke-dasharray:1 3}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}.f5{fill:var(--c5)}
.h{fill:var(--heat)}.p50{stroke:var(--fg)}.p99{stroke:var(--c1);stroke-dasharray:5 2}
.half{opacity:.45}.tick{stroke:var(--fg);stroke-width:.8;fill:none}.base{stroke:var(--soft);stroke-width:1;fill:none}
.cross{stroke:var(--bad);stroke-width:1.8;fill:none}.fbad{fill:var(--bad)}.queue{fill:none;stroke:var(--soft);stroke-width:.8}
svg .id{font:10px ui-monospace,monospace}@media(max-width:560px){svg .id{font-size:14px}.id .more{display:none}}
.zero{stroke:var(--fg);stroke-width:1.2}
.thin{stroke-width:1.1}.within{stroke-width:1.6;stroke:var(--soft);stroke-dasharray:2 3}
.ok{fill:var(--good);opacity:.16}.margin{stroke:var(--good);stroke-width:2}.pale{fill:var(--soft);opacity:.38}
.ring{fill:var(--card);stroke-width:2;stroke-dasharray:none}.caption{font-weight:600}.cell{fill:var(--heat)}
.s-part{stroke:var(--fg);stroke-width:.6;fill:none}.s-gateway{fill:var(--fg)}.s-upstream{fill:var(--soft);fill-opacity:.55}
.faint{opacity:.18}.unsure{fill:none;stroke:var(--soft);stroke-dasharray:4 3;opacity:.9}
.l-asked{stroke:var(--fg);stroke-width:1.2;stroke-dasharray:6 3}.l-held{stroke:var(--good);stroke-width:1.8}
.l-wanted{stroke:var(--warn);stroke-width:1.8;stroke-dasharray:2 3}.void{stroke:var(--soft);stroke-width:1.8;fill:none}
.trail{stroke:var(--soft);stroke-width:.9}.whisker{stroke-dasharray:none;stroke-width:1.6}
svg .num{font:11px system-ui,sans-serif;stroke-width:3px}@media(max-width:560px){svg .num{font-size:14px}}
.right{fill:none;stroke:var(--good);stroke-width:2}.wrong{fill:none;stroke:var(--bad);stroke-width:2;stroke-dasharray:4 2}
.sides{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr));gap:0 24px}
.sides>div{min-width:0}.wide{grid-column:1/-1}
.fine td:first-child{white-space:normal;min-width:11rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;margin:12px 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 10px}.card p{margin:0}
.figure{font-size:1.15rem;font-weight:600;font-variant-numeric:tabular-nums}.figure .soft{font-size:.8rem;font-weight:400}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:0 12px;margin:8px 0}.facts dd{overflow-wrap:anywhere;margin:0}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
th,td{padding:2px 8px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
.scroll{overflow-x:auto;max-width:100%}details .scroll{max-height:24rem;overflow-y:auto}
.entry{display:inline-block;margin-right:14px}ul:empty{display:none}
dt{font-weight:600}dd{margin:0 0 .3em}code{overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--soft)}
footer{margin-top:20px;font-size:.85rem}li,p,td{overflow-wrap:anywhere}
@media(max-width:560px){svg text{font-size:16px}svg .spare{display:none}body{padding:8px}section{padding:10px}}
@media print{body{max-width:none;padding:0}main{display:block}section{break-inside:avoid;margin-bottom:12px}}
";
