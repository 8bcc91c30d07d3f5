"use strict";

// Draws the charts of a ranker's page with uPlot in place of the lines that the server drew.
// The page gives the colours (as custom properties) and the numbers (as JSON); nothing is built
// from strings of markup here.
const keyholeCharts = (() => {
  const LINES = {
    score: { colour: "--blue", dash: [] },
    regret: { colour: "--blue", dash: [] },
    full_information: { colour: "--orange", dash: [8, 5] },
    exploration: { colour: "--green", dash: [] },
  };
  const SHARES = new Set(["exploration"]);
  const drawn = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function digits(name, number) {
    if (number === null || number === undefined) return "";
    if (SHARES.has(name)) return `${(100 * number).toFixed(1)} %`;
    return Math.abs(number) >= 100 ? number.toFixed(0) : number.toFixed(3);
  }

  // The numbers under the pointer, in the legend that the page brought along.
  function tell(key, plot) {
    const at = plot.cursor.idx;
    plot.series.slice(1).forEach((line, i) => {
      const place = document.querySelector(`[data-under="${key}.${line.label}"]`);
      const number = at === null || at === undefined ? null : plot.data[i + 1][at];
      if (place) place.textContent = digits(line.label, number);
    });
  }

  function markAlarms(plot, marks) {
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = colour("--orange");
    plot.ctx.lineWidth = 1.5 * devicePixelRatio;
    plot.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const mark of marks) {
      const x = plot.valToPos(mark, "x", true);
      if (x < left || x > left + width) continue;
      plot.ctx.beginPath();
      plot.ctx.moveTo(x, top);
      plot.ctx.lineTo(x, top + height);
      plot.ctx.stroke();
    }
    plot.ctx.restore();
  }

  function options(key, box, chart) {
    const names = Object.keys(chart.lines);
    const axis = { stroke: colour("--soft"), ticks: { stroke: colour("--rule") }, font: "12px system-ui, sans-serif" };
    const upward = { grid: { stroke: colour("--rule"), width: 1 }, size: 46, gap: 4, space: 24 };
    const hundredths = (tick) => `${+(100 * tick).toPrecision(3)} %`;
    return {
      width: box.clientWidth,
      height: box.clientHeight,
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_, low, high) => uPlot.rangeNum(low, high, 0.1, true) } },
      axes: [
        { ...axis, grid: { show: false }, size: 32 },
        SHARES.has(key) ? { ...axis, ...upward, size: 56, values: (_, ticks) => ticks.map(hundredths) } : { ...axis, ...upward },
      ],
      series: [
        { label: "round" },
        ...names.map((name) => ({
          label: name,
          stroke: colour(LINES[name].colour),
          width: 2,
          dash: LINES[name].dash,
          points: { show: false },
          spanGaps: true,
        })),
      ],
      hooks: {
        draw: [(plot) => markAlarms(plot, drawn.get(key)?.marks ?? chart.marks)],
        setCursor: [(plot) => tell(key, plot)],
      },
    };
  }

  function draw(key, box, chart) {
    const data = [chart.rounds, ...Object.values(chart.lines)];
    const old = drawn.get(key);
    if (old) {
      old.marks = chart.marks;
      old.chart = chart;
      old.plot.setData(data);
      return;
    }
    if (box.clientWidth === 0) return; // Hidden as yet: there is nothing to draw.
    box.replaceChildren();
    const plot = new uPlot(options(key, box, chart), data, box);
    drawn.set(key, { plot, chart, box, marks: chart.marks });
  }

  function all(charts) {
    for (const box of document.querySelectorAll("[data-chart]")) {
      const chart = charts[box.dataset.chart];
      if (chart && chart.rounds.length > 1) draw(box.dataset.chart, box, chart);
    }
  }

  function again() {
    const before = [...drawn.entries()];
    drawn.clear();
    for (const [key, { plot, chart, box }] of before) {
      plot.destroy();
      draw(key, box, chart);
    }
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", () => {
    for (const { plot, box } of drawn.values()) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  });
  return { all };
})();
