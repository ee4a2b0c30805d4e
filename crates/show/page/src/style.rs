//! The style of the page: light and dark, on paper, from 320 pixels on. Series use the colours of
//! Okabe and Ito, which people with colour blindness can distinguish, and lines also differ by
//! their dashes.

pub(crate) const CSS: &str = "
:root{--bg:#fff;--fg:#1b1b1b;--soft:#5c5c5c;--line:#d5d5d5;--card:#f7f7f7;--good:#00694b;--bad:#a62c00;--warn:#7a5200;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#8a6d00;--c5:#3f8fbf;color-scheme:light dark}
@media(prefers-color-scheme:dark){:root{--bg:#161616;--fg:#ececec;--soft:#a8a8a8;--line:#3d3d3d;--card:#202020;
--good:#4cc79f;--bad:#ff8f66;--warn:#f0c040;--c0:#56b4e9;--c1:#ff8f3f;--c2:#2fc79a;--c3:#e59cc4;--c4:#f0e442;--c5:#8fd0ff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1560px;padding:16px;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.05rem;margin:.2em 0}p{margin:.35em 0}h1,h2{overflow-wrap:anywhere}
header{border-bottom:1px solid var(--line);padding-bottom:12px;margin-bottom:16px}
.verdict{font-size:1.15rem;font-weight:600}.good{color:var(--good)}.open{color:var(--warn)}.bad{color:var(--bad)}.soft,footer{color:var(--soft)}
main,.curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:16px}
section{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:12px;min-width:0}
figure{margin:8px 0}.chart{width:100%;min-height:60px}.chart svg{display:block;max-width:100%;height:auto}
#tip{display:none;position:fixed;z-index:1;padding:6px 8px;max-width:22rem;font-size:.82rem;pointer-events:none;
background:var(--card);color:var(--fg);border:1px solid var(--soft);border-radius:4px;overflow-wrap:anywhere}
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
.scroll{overflow-x:auto;max-width:100%;background:linear-gradient(90deg,var(--bg) 40%,transparent) 0/30px 100% no-repeat local,
linear-gradient(270deg,var(--bg) 40%,transparent) 100%/30px 100% no-repeat local,linear-gradient(90deg,#8886,transparent) 0/12px 100% no-repeat,
linear-gradient(270deg,#8886,transparent) 100%/12px 100% no-repeat}section .scroll{--bg:var(--card)}details .scroll{max-height:24rem;overflow-y:auto}
ul:empty{display:none}
dt{font-weight:600}dd{margin:0 0 .3em}code{overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--soft)}
footer{margin-top:20px;font-size:.85rem}li,p,td{overflow-wrap:anywhere}
@media(max-width:560px){body{padding:8px}section{padding:10px}}
@media print{#tip{display:none!important}body{max-width:none;padding:0}main{display:block}section{break-inside:avoid;margin-bottom:12px}}
";
