// Draws the charts of the page, again when its colours or its width change. Each chart is a Vega-Lite specification
// with named data sets. The interpreter of expressions replaces `eval`, which the page's policy forbids.
(() => {
  const shorten = (value, digits) => Number(value.toPrecision(digits)).toLocaleString("en-US", {maximumFractionDigits: 9});
  const time = ms => {
    const size = Math.abs(ms);
    const [unit, factor] = size === 0 ? ["", 1] : size < 1e-3 ? ["ns", 1e6] : size < 1 ? ["us", 1e3] : size < 1e3 ? ["ms", 1] : ["s", 1e-3];
    return shorten(ms * factor, 3) + unit;
  };
  const formats = {
    time,
    plain: value => shorten(value, 3),
    percent: value => shorten(value, 3) + "%",
    second: at => (at < 600 ? shorten(at, 4) : `${Math.floor(at / 60)}:${String(Math.floor(at % 60)).padStart(2, "0")}`),
    percentile: oneIn => "p" + Number((100 - 100 / oneIn).toFixed(4)),
  };
  for (const [name, format] of Object.entries(formats)) {
    vega.expressionFunction(name + "Text", value => (typeof value === "number" ? format(value) : "-"));
  }

  // A label of any length is broken into lines of its place, at a sign where it has one, and is never cut.
  const LINE = 14, CHARACTER = 7.5;
  const broken = (label, most) => {
    const lines = [""];
    for (const part of String(label).match(/[^\s_/.-]+[\s_/.-]*|[\s_/.-]+/g) ?? [])
      for (let at = 0; at < part.length; at += most) {
        const piece = part.slice(at, at + most);
        if ((lines.at(-1) + piece).trimEnd().length > most) lines.push("");
        lines[lines.length - 1] += piece;
      }
    return lines;
  };
  vega.expressionFunction("broken", broken);
  const fitting = pixels => Math.max(8, Math.floor(pixels / CHARACTER));

  const tip = document.createElement("div");
  tip.id = "tip";
  document.body.append(tip);
  const showTip = (_, event, __, value) => {
    const rows = event && value && typeof value === "object" ? Object.entries(value) : [];
    tip.replaceChildren(
      ...rows.map(([name, text]) => {
        const line = document.createElement("div");
        line.textContent = `${name}: ${text}`;
        return line;
      }),
    );
    tip.style.display = rows.length ? "block" : "none";
    if (!rows.length) return;
    tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(0, Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 8)) + "px";
  };

  const columns = width => Math.max(1, Math.floor(width / 240));
  const config = width => {
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const [text, soft, line] = ["--fg", "--soft", "--line"].map(colour);
    const labels = {labelColor: text, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal"};
    return {
      aria: false,
      mark: {aria: false}, // Without it, each mark is a graphic without a name for screen readers.
      background: "transparent",
      customFormatTypes: true,
      font: "system-ui, sans-serif",
      view: {stroke: null},
      axis: {...labels, gridColor: line, domainColor: soft, tickColor: soft, labelLimit: 0},
      axisX: {tickCount: Math.max(2, Math.round(width / 110))},
      legend: {...labels, symbolOpacity: 1, title: null, orient: "top", columns: columns(width), labelLimit: 0},
      line: {strokeWidth: 1.8},
      point: {filled: true, size: 50, opacity: 1},
      rect: {color: soft},
      rule: {color: soft},
      text: {color: text},
      range: {category: [0, 1, 2, 3, 4, 5].map(nth => colour(`--c${nth}`))},
    };
  };

  const draw = chart => {
    const {spec, data} = JSON.parse(chart.nextElementSibling.textContent);
    const whole = {width: "container", height: 230, data: {name: "rows"}, ...spec};
    const width = chart.clientWidth, most = fitting(width * 0.4);
    if (whole.height.step) {
      const labels = data.rows.map(row => broken(row[spec.encoding.y.field], most).length);
      whole.height = {step: Math.max(whole.height.step, LINE * Math.max(...labels) + 6)};
    }
    // Errors alone: it warns of a height in steps, which it handles as we want.
    const options = {config: config(width), logger: vega.logger(vega.Error)};
    const compiled = vegaLite.compile({...whole, datasets: data}, options).spec;
    const label = (guide, most, dy) => {
      const update = {text: {signal: `broken(datum.label, ${most})`}, lineHeight: {value: LINE}, dy: {signal: dy(`length(broken(datum.label, ${most}))`)}};
      guide.encode = {...guide.encode, labels: {...guide.encode?.labels, update: {...update, ...guide.encode?.labels?.update}}};
    };
    const names = new Set(compiled.scales?.filter(scale => /band|point/.test(scale.type)).map(scale => scale.name));
    compiled.axes?.filter(axis => axis.orient === "left" && names.has(axis.scale)).forEach(axis => label(axis, most, lines => `${-LINE / 2} * (${lines} - 1)`));
    compiled.legends?.forEach(legend => label(legend, fitting((width * 0.35) / columns(width)), () => "0"));
    chart.view?.finalize();
    chart.view = new vega.View(vega.parse(compiled, null, {ast: true}), {
      container: chart,
      expr: vegaInterpreter.expressionInterpreter,
      hover: true,
      renderer: "svg",
      tooltip: showTip,
    });
    return chart.view.runAsync();
  };

  const drawAll = () => document.querySelectorAll(".chart").forEach(draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) drawAll();
    width = innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
