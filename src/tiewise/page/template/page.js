// What moves on the page. It does no arithmetic on measures: every value shown was computed before, by tiewise.
// Texts from files become text nodes and nothing else.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const number = (x) => x?.toFixed(4).replace(/^-(?=.*[1-9])/, "−").replace("-", "") ?? "–";

function make(tag, text = "", classes = "") {
  const element = document.createElement(tag);
  if (text !== "") element.textContent = text;
  if (classes) element.className = classes;
  return element;
}

/** A row of a table: what it is about, then cells; numbers stand to the right, after their marks. */
function row([head, ...cells], [, ...marks] = []) {
  const made = make("tr");
  const first = make("th", head);
  first.scope = "row";
  const cell = (one, at) => (typeof one === "string" ? make("td", one, "name") : make("td", (marks[at] ?? "") + number(one), "number"));
  made.append(first, ...cells.map(cell));
  return made;
}

/** Give each cell the name of its column; a row of a table that is too wide becomes a block and shows it. */
function stack(table) {
  const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  for (const { cells } of table.tBodies[0].rows) {
    [...cells].forEach((cell, column) => (cell.dataset.label = names[column]));
  }
  table.classList.remove("stacked");
  const { scrollWidth, clientWidth } = table.parentElement;
  table.classList.toggle("stacked", scrollWidth > clientWidth);
}

function choices(select, names) {
  select.replaceChildren(...names.map((name, place) => new Option(name, String(place))));
}

// -- light and dark ---------------------------------------------------------------------------------------------
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let theme = new URLSearchParams(location.search).get("theme");

function paint() {
  const dark = theme === "dark" || (theme !== "light" && prefersDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${dark ? "light" : "dark"} colours`);
}

$("theme").hidden = false;
$("theme").addEventListener("click", () => {
  theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  paint();
});
prefersDark.addEventListener("change", paint);
paint();

// -- charts -----------------------------------------------------------------------------------------------------
const NARROW = 600;

const [LETTER, SYMBOL] = [7, 40]; // the widths of a letter of a label, and of a legend's symbol, in pixels

/** An expression for a label of so many letters, shortened in the middle: long names often differ at their ends. */
const shortened = (label, letters) => `truncate(${label}, ${letters}, 'center')`;

/** An expression for a label in two lines, if it is longer than so many letters. */
function inTwoLines(letters) {
  const middle = `min(${letters}, ceil(length(datum.label) / 2))`;
  const lines = [`slice(datum.label, 0, ${middle})`, shortened(`slice(datum.label, ${middle})`, letters)];
  return `length(datum.label) > ${letters} ? [${lines}] : datum.label`;
}

/** Legends in as many columns as labels of so many letters have room for; `place` moves a legend with that many lines. */
function fitLegends(spec, room, letters, place = () => ({})) {
  const columns = Math.max(1, Math.min(4, Math.floor(room / (LETTER * letters + SYMBOL))));
  const labelLimit = room / columns - SYMBOL;
  const labelExpr = shortened("datum.label", Math.floor(labelLimit / LETTER));
  for (const layer of spec.layer) {
    for (const { legend, scale } of Object.values(layer.encoding)) {
      if (legend) Object.assign(legend, { columns, labelLimit, labelExpr }, place(Math.ceil(scale.domain.length / columns)));
    }
  }
}

async function draw(id, { spec, caption }, fit) {
  const box = $(id);
  const made = structuredClone(spec);
  fit(made, box.clientWidth);
  $(`${id}-caption`).textContent = caption;
  await vegaEmbed(box, made, { actions: false, renderer: "svg", logLevel: 1 });
  box.dataset.drawn = String(Number(box.dataset.drawn || 0) + 1);
}

/** Names to the left of the frame, words and brackets to its right; on a phone the words stand in the table alone. */
function fitForest(spec, room) {
  const narrow = room < NARROW;
  const labels = Math.min(narrow ? 0.42 * room : 240, 7.2 * data.forest.labels + 12);
  const words = narrow ? 0 : 168;
  const frame = Math.max(140, room - labels - words - 18 * data.forest.brackets - 28);
  if (narrow) spec.layer = spec.layer.filter((layer) => layer.encoding.text?.field !== "words");
  for (const layer of spec.layer) {
    const { x, y } = layer.encoding;
    if (x && x.value !== undefined) x.value += frame - spec.width - (narrow ? 166 : 0);
    if (x && x.axis) x.axis.tickCount = Math.min(x.axis.tickCount, frame / 40);
    if (y && y.axis) Object.assign(y.axis, { labelLimit: labels, labelExpr: inTwoLines(Math.floor(labels / LETTER)) });
  }
  spec.width = frame;
  const small = { labelFontSize: 11, labelExpr: "datum.label" };
  const fromTheEdge = (lines) => ({ ...small, orient: "none", direction: "vertical", legendX: -labels, legendY: -18 * lines - 14 });
  if (narrow) fitLegends(spec, room, Infinity, fromTheEdge);
}

function fitCurve(spec, room) {
  spec.width = room;
  spec.height = room < NARROW ? 260 : 340;
  spec.autosize = { type: "fit-x", contains: "padding" };
  fitLegends(spec, room - 50, data.forest.labels); // beside the axis
}

/** Rows at even distances, by their bytes; the sizes are named below the middle of their rows. */
function spaceEvenly(spec) {
  const rows = Object.values(spec.datasets).find((one) => "place" in one[0]);
  const nearest = (place, sizes) => sizes.reduce((a, b) => (Math.abs(Math.log(a / place)) <= Math.abs(Math.log(b / place)) ? a : b));
  rows.sort((a, b) => a.place - b.place).forEach((one, slot) => (one.slot = slot));
  for (const { x } of spec.layer.map((layer) => layer.encoding)) {
    if (x?.field !== "place" || x.scale.type !== "log") continue;
    const middles = x.axis.values.map((size) => {
      const slots = rows.filter((one) => nearest(one.place, x.axis.values) === size).map((one) => one.slot);
      return [(slots[0] + slots.at(-1)) / 2, size.toLocaleString("en")];
    });
    const labels = middles.map(([slot, text]) => `'${slot}': '${text}'`);
    Object.assign(x, { field: "slot", title: "bytes of a document vector", scale: { zero: false, nice: false, padding: 12 } });
    Object.assign(x.axis, { values: middles.map(([slot]) => slot), labelExpr: `{${labels}}[datum.value]` });
  }
}

function fitLosses(spec, room) {
  spec.width = room;
  spec.autosize = { type: "fit-x", contains: "padding" };
  if (room >= NARROW) return;
  spaceEvenly(spec);
  for (const { mark, encoding } of spec.layer) {
    if (mark.type === "text") mark.fontSize = 9;
    if (mark.type === "point") mark.size = 35;
    if (encoding.color?.legend) encoding.color.legend.columns = 2;
  }
}

const drawLosses = () => (data.losses ? draw("losses", data.losses, fitLosses) : null);
const drawForest = () => draw("forest", data.forest, fitForest);

function drawCurve() {
  const chosen = data.curves[Number($("curve-measure").value)];
  const most = Number($("curve-cutoff").value);
  const spec = structuredClone(chosen.spec);
  const [name, points] = Object.entries(spec.datasets)[0];
  spec.datasets[name] = points.filter((point) => point.cutoff <= most);
  const at = points.filter((point) => point.cutoff === most);
  const columns = ["system", "expected", "minimum", "maximum", "oblivious"];
  const rows = at.map((one) => row(columns.map((name) => one[name]), columns.map((name) => one.marks?.[name])));
  $("curve-at").textContent = `${chosen.measure}@${most}`;
  $("curve-values").tBodies[0].replaceChildren(...rows);
  $("curve-chosen").textContent = `${chosen.measure} up to k = ${most}`; // paper has no controls
  stack($("curve-values"));
  return draw("curve", { ...chosen, spec }, fitCurve);
}

choices($("curve-measure"), data.curves.map((one) => one.measure));
const cutoffs = [...new Set(Object.values(data.curves[0].spec.datasets)[0].map((point) => point.cutoff))];
$("curve-cutoff").replaceChildren(...cutoffs.map((k) => new Option(k, k)));
$("curve-cutoff").value = String(cutoffs.at(-1));
for (const id of ["curve-measure", "curve-cutoff"]) $(id).addEventListener("change", drawCurve);

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return; // a phone hides its address bar: nothing to draw anew
  width = innerWidth;
  document.querySelectorAll(".scroll table").forEach(stack);
  clearTimeout(window.redraw);
  window.redraw = setTimeout(() => Promise.all([drawForest(), drawCurve(), drawLosses()]), 150);
});

// -- one query in every order -----------------------------------------------------------------------------------
const grades = new Map(data.grades);
const grade = (label) => `g${Math.min(4, grades.get(label) ?? 0)}`;

function chip(rank, id, label) {
  const one = make("li", "", `chip ${grade(label)}`);
  one.append(make("span", rank, "rank"), make("span", id, "id"), make("span", String(label), "label"));
  one.setAttribute("aria-label", `rank ${rank}: ${id}, label ${label}`);
  return one;
}

function unjudged(from, to) {
  const one = make("li", "", "chip none");
  const [rank, what] = from === to ? [from, "unjudged"] : [`${from}–${to}`, `${to - from + 1} unjudged`];
  one.append(make("span", rank, "rank"), make("span", what));
  return one;
}

/** The documents of a group in the order of one stop, and what lies below the ranks shown as counts. */
function chips(list, stop, group) {
  const row = make("ul", "", "chips");
  const end = Math.min(group.start + group.size, list.shown);
  const left = new Map(group.labels);
  let blank = 0;
  for (let at = group.start; at <= end; at++) {
    const doc = at < end ? stop.slots[at] : -2;
    if (doc === -1) blank++;
    if (doc !== -1 && blank) {
      row.append(unjudged(at - blank + 1, at));
      blank = 0;
    }
    if (doc >= 0) {
      const [id, label] = list.docs[doc];
      left.set(label, left.get(label) - 1);
      row.append(chip(at + 1, id, label));
    }
  }
  const rest = group.start + group.size - end;
  if (rest > 0) {
    const labels = [...left].filter(([, many]) => many > 0).map(([label, many]) => `${many} of label ${label}`);
    const judged = labels.length ? `, among them ${labels.join(", ")}` : "";
    row.append(make("li", `${rest} more below rank ${end}${judged}`, "chip none"));
  }
  return row;
}

function box(list, stop, group) {
  const last = group.start + group.size;
  const ranks = group.size === 1 ? `rank ${last}` : `ranks ${group.start + 1}–${last}`;
  if (!group.labels.length) return make("li", `${ranks}: ${group.size === 1 ? "not" : "none"} judged`, "gap");
  const tied = group.size > 1;
  const item = make("li", "", tied ? "tied" : "");
  const about = tied ? `${ranks} · ${group.size} documents with score ${group.score}` : `${ranks} · score ${group.score}`;
  item.append(make("p", about, "about"), chips(list, stop, group));
  return item;
}

const replay = () => data.replays[Number($("play-query").value)].lists[Number($("play-run").value)];

function play() {
  const list = replay();
  $("play-chosen").textContent = `Query ${$("play-query").selectedOptions[0].textContent}, run ${list.run}`;
  const at = Number($("play-order").value);
  const stop = list.stops[at];
  const last = list.stops.length - 1;
  const name = at === 0 ? list.ends[0] : at === last ? list.ends[1] : `random order ${at} of ${last - 1}, by value`;
  const [worst, best] = [list.stops[0].values[0], list.stops[last].values[0]];
  const others = data.measures.slice(1).map((measure, place) => `${measure} ${number(stop.values[place + 1])}`);
  const shown = [make("span", `${data.measures[0]} in ${name}`), make("strong", number(stop.values[0]))];
  shown.push(make("span", number(worst) === number(best) ? "the same in every order" : `worst ${number(worst)}, best ${number(best)}`));
  $("play-value").replaceChildren(...shown, make("span", others.join(" · ")));
  $("play-order").setAttribute("aria-valuetext", `${name}: ${number(stop.values[0])}`);
  const boxes = list.groups.map((group) => box(list, stop, group));
  const below = list.length - Math.max(...list.groups.map((group) => group.start + group.size));
  if (below > 0) boxes.push(make("li", `${below} more documents below`, "gap"));
  $("play-groups").replaceChildren(...boxes);
}

function chooseQuery() {
  choices($("play-run"), data.replays[Number($("play-query").value)].lists.map((list) => list.run));
  play();
}

const marks = data.grades.map(([label]) => make("span", `label ${label}`, `chip ${grade(label)}`));
$("play-legend").replaceChildren(...marks, make("span", "unjudged", "chip none"), make("span", "thick frame: a tie"));
if (data.replays.length) {
  choices($("play-query"), data.replays.map((one) => one.query));
  $("play-query").addEventListener("change", chooseQuery);
  $("play-run").addEventListener("change", play);
  $("play-order").addEventListener("input", play);
  chooseQuery();
}

// -- precisions -------------------------------------------------------------------------------------------------
for (const radio of document.querySelectorAll(".switch input")) {
  const choose = (moved) => {
    for (const panel of document.querySelectorAll(`.panel[data-group="${radio.name}"]`)) {
      panel.hidden = panel.dataset.run !== radio.value;
    }
    const run = [...$("play-run").options].find((option) => option.textContent === radio.value);
    if (moved && run) {
      run.selected = true;
      play();
    }
  };
  radio.addEventListener("change", () => choose(true));
  if (radio.checked) choose(false);
}

// -- tables -----------------------------------------------------------------------------------------------------
/** Heads of columns become switches: `reorder` gets the column and 1 for ascending, −1 for descending. */
function sortable(table, reorder) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const was = head.getAttribute("aria-sort");
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const next = was === null ? first : was === "ascending" ? "descending" : "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      reorder(column, next === "ascending" ? 1 : -1);
    });
  });
}

const collator = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return collator.compare(String(a ?? ""), String(b ?? ""));
}

function cellValue({ dataset, textContent }) {
  const text = dataset.value ?? textContent.trim();
  return text === "" || Number.isNaN(Number(text)) ? text : Number(text);
}

document.querySelectorAll(".scroll table").forEach(stack);

for (const table of document.querySelectorAll("table.sortable")) {
  sortable(table, (column, way) => {
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => way * compare(cellValue(a.cells[column]), cellValue(b.cells[column])));
    table.tBodies[0].append(...rows);
  });
}

// -- queries ----------------------------------------------------------------------------------------------------
const PAGE = 25;
const all = data.perQuery.runs.flatMap((one) =>
  data.perQuery.queries.map((query, at) => {
    const [low, high] = [one.minimum[at], one.maximum[at]];
    const values = [query, one.run, one.expected[at], low, high, high - low, one.oblivious ? one.oblivious[at] : null];
    const marks = ["query", "run", "expected", "minimum", "maximum", "range"].map((name) => one.marks[name]?.[at]);
    return { values, marks };
  }),
);
let [order, limit] = [[5, -1], PAGE]; // by range, the widest first

function listQueries(most) {
  limit = most;
  const text = $("query-text").value.trim().toLowerCase();
  const run = data.runs[Number($("query-run").value) - 1]; // the first choice is all of them
  const moved = $("query-moved").checked;
  const wanted = ([query, name]) => query.toLowerCase().includes(text) && (!run || name === run);
  const kept = all.filter(({ values }) => wanted(values) && (!moved || values[5] > 0));
  kept.sort((a, b) => order[1] * compare(a.values[order[0]], b.values[order[0]]));
  const rows = kept.slice(0, limit).map(({ values, marks }) => row(values, marks));
  $("query-table").tBodies[0].replaceChildren(...rows);
  stack($("query-table"));
  const chosen = [text && `queries with “${text}”`, run && `run ${run}`, moved && "only where ties matter"];
  $("query-chosen").textContent = chosen.filter(Boolean).join(", ");
  $("query-count").textContent = `${rows.length.toLocaleString("en")} of ${kept.length.toLocaleString("en")} rows shown.`;
  $("query-more").hidden = kept.length <= limit;
}

choices($("query-run"), ["all", ...data.runs]);
for (const id of ["query-text", "query-run", "query-moved"]) $(id).addEventListener("input", () => listQueries(PAGE));
$("query-more").addEventListener("click", () => listQueries(limit + 4 * PAGE));
sortable($("query-table"), (...chosen) => {
  order = chosen;
  listQueries(limit);
});
listQueries(PAGE);

await Promise.all([drawForest(), drawCurve(), drawLosses()]);
document.documentElement.dataset.ready = "yes";
