/*
 * The flame graph's behaviour. Frames are drawn from the file's own data for
 * the view at hand: only rows that are in sight, only frames wide enough to
 * see. What names say is only ever set as text, never as markup.
 */
(function () {
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
const ROW = 17;			/* pixels from one row to the next */
const NARROWEST = 0.5;		/* narrower frames are drawn together, as a remainder */
const INDENT = 3;		/* of a frame's text */
const ANCESTORS_IN_SIGHT = 8;	/* below a frame that was zoomed to */

const LOOKS = {
	a: "", l: "Lua, interpreted", j: "Lua, compiled", b: "builtin", c: "C function",
	n: "native", v: "VM", t: "trace", x: "lost",
};
const KEYS = [
	["Click, Enter", "zoom to a frame"],
	["Esc, Backspace", "zoom back; Esc first ends a search"],
	["Arrow keys, Home", "move between frames"],
	["Ctrl-F or /", "search for text or a regular expression"],
	["n, Shift-n", "next, previous match"],
	["r", "reset zoom and search"],
	["i", "turn upside down"],
	["?", "this help"],
];

const root = document.getElementById("ljspy");

/* -- Data -- */

function lines(id) {
	return document.getElementById(id).textContent.split("\n").filter((line) => line !== "");
}

/*
 * Frames are numbered callers before callees; those below frame i are
 * i + 1 ... end[i] - 1. rows[d] lists the frames of depth d from left to right.
 */
function load() {
	const labels = lines("labels").map((line) => ({ look: line[0], text: line.slice(2) }));
	const source = lines("frames");
	const count = source.length;
	const frames = {
		labels, count, rows: [],
		depth: new Int32Array(count), label: new Int32Array(count),
		parent: new Int32Array(count), end: new Int32Array(count),
		start: new Float64Array(count), total: new Float64Array(count), own: new Float64Array(count),
		samples: new Float64Array(count), ownSamples: new Float64Array(count),
		compiled: new Float64Array(count),
	};
	const path = [];		/* the last frame of each depth */
	const next = [];		/* where its next callee starts */

	for (let i = 0; i < count; i++) {
		const fields = source[i].split(" ").map(Number);
		const depth = fields[0];

		[frames.depth[i], frames.label[i], frames.total[i], frames.own[i],
		 frames.samples[i], frames.ownSamples[i], frames.compiled[i]] = fields;
		while (path.length > depth)
			frames.end[path.pop()] = i;
		frames.parent[i] = depth ? path[depth - 1] : -1;
		frames.start[i] = depth ? next[depth - 1] : 0;
		if (depth)
			next[depth - 1] += frames.total[i];
		next[depth] = frames.start[i];
		path.push(i);
		(frames.rows[depth] ||= []).push(i);
	}
	while (path.length)
		frames.end[path.pop()] = count;
	return frames;
}

const frames = load();
const everything = frames.total[0];

function text(i) {
	return frames.labels[frames.label[i]].text;
}

function look(i) {
	const kind = frames.labels[frames.label[i]].look;

	return kind === "l" && frames.compiled[i] > frames.total[i] / 2 ? "j" : kind;
}

/* The weight of frames below (and with) i that match, each part counted once though matches nest. */
function weightOf(i, matches) {
	const end = frames.end[i];
	let weight = 0;

	while (i < end) {
		if (matches(i)) {
			weight += frames.total[i];
			i = frames.end[i];
		} else {
			i++;
		}
	}
	return weight;
}

/* -- Words -- */

const grouped = new Intl.NumberFormat("en");

function percent(part, whole) {
	return whole ? (100 * part / whole).toFixed(2) + " %" : "0 %";
}

function duration(ns) {
	const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
	const [size, unit] = units.find(([size]) => ns >= size) || [1, "ns"];

	return Number((ns / size).toPrecision(3)) + " " + unit;
}

function samples(count) {
	return grouped.format(count) + (count === 1 ? " sample" : " samples");
}

/* -- Elements -- */

function element(namespace, name, attributes, ...children) {
	const made = document.createElementNS(namespace, name);

	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children);
	return made;
}

const html = (name, attributes, ...children) => element(HTML, name, attributes, ...children);
const svg = (name, attributes, ...children) => element(SVG, name, attributes, ...children);

function table(rows) {
	return html("table", {}, ...rows.map((cells) =>
		html("tr", {}, ...cells.map((cell) => html("td", {}, cell)))));
}

function aboutBlock() {
	const [headline, ...details] = lines("about");

	return html("div", { class: "about" }, html("h1", {}, headline), ...details.map((line) =>
		html("p", { title: line, class: line.startsWith("$ ") ? "command" : "" }, line)));
}

function legendBlock() {
	const used = new Set();

	for (let i = 0; i < frames.count; i++)
		used.add(look(i));
	return html("div", { class: "legend" }, ...Object.keys(LOOKS)
		.filter((key) => LOOKS[key] && used.has(key))
		.map((key) => html("span", {},
			svg("svg", { "aria-hidden": "true" }, svg("g", { class: "f " + key },
				svg("rect", { width: 12, height: 12 }))),
			LOOKS[key])));
}

const ui = {
	search: html("input", { type: "search", placeholder: "Search text or regex", "aria-label": "Search frames",
				spellcheck: "false", autocomplete: "off" }),
	reset: html("button", { type: "button", title: "Reset zoom and search (r)" }, "Reset"),
	invert: html("button", { type: "button", title: "Turn upside down (i)" }, "Invert"),
	helpButton: html("button", { type: "button", title: "Keys (?)", "aria-label": "Keys" }, "?"),
	result: html("output", { "aria-live": "polite" }),
	picture: svg("svg", { class: "frames", role: "presentation" }),
	tip: html("div", { class: "tip", role: "tooltip" }),
	help: html("div", { class: "help", hidden: "" }, table(KEYS)),
};
ui.scroll = html("div", { class: "scroll", tabindex: "0", role: "tree", "aria-label": "Flame graph" }, ui.picture);
ui.app = html("div", { class: "app" },
	html("div", { class: "top" }, aboutBlock(),
		html("div", { class: "tools" }, ui.search, ui.reset, ui.invert, ui.helpButton, ui.result)),
	legendBlock(), ui.scroll, ui.help, ui.tip);

/* -- View -- */

/* What is shown; zoom, search and inverted are kept in the address, so that back, reload and links work. */
const view = { zoom: 0, search: "", inverted: root.dataset.inverted === "1" };
const invertedAtFirst = view.inverted;
let active = 0;			/* the frame that keys act on */
let matching = null;		/* whether each label matches the search; null without one */
let zoomsMade = 0;		/* how many steps back lead to a view of this file */

const measure = document.createElementNS(HTML, "canvas").getContext("2d");
let charWidth = 7.3;

function measureFont() {
	const style = getComputedStyle(ui.picture);

	measure.font = style.fontSize + " " + style.fontFamily;
	charWidth = measure.measureText("m".repeat(64)).width / 64;
}

/* As much of a label as fits into so many pixels. */
function fitted(label, width) {
	const room = width - 2 * INDENT;
	let length = Math.floor(room / charWidth);

	if (length < 2)
		return "";
	if (/^[ -~]*$/.test(label))
		return label.length <= length ? label : label.slice(0, length - 1) + "…";

	const characters = Array.from(label.slice(0, 4 * length));
	if (label.length <= 4 * length && measure.measureText(label).width <= room)
		return label;
	length = Math.min(length, characters.length);
	while (length > 0 && measure.measureText(characters.slice(0, length).join("") + "…").width > room)
		length--;
	return length ? characters.slice(0, length).join("") + "…" : "";
}

function isAncestor(i, of) {
	return i <= of && of < frames.end[i];
}

/* Pixels to the left edge of frame i and its width; ancestors of the zoomed frame fill the row. */
function span(i) {
	const width = layout.width;
	const zoom = view.zoom;

	if (isAncestor(i, zoom))
		return [0, width];
	return [(frames.start[i] - frames.start[zoom]) / frames.total[zoom] * width,
		frames.total[i] / frames.total[zoom] * width];
}

function rowTop(depth) {
	return view.inverted ? depth * ROW : layout.height - (depth + 1) * ROW;
}

/* Sizes of the picture; recomputed by place(). */
const layout = { width: 0, height: 0, deepest: 0 };

/* The deepest row with anything to see when zoomed to frame i: at most the callees of a frame that is wide enough. */
function deepestRow(i) {
	const narrowest = frames.total[i] * NARROWEST / layout.width;
	let deepest = frames.depth[i];

	for (let j = i + 1; j < frames.end[i]; j++) {
		if (frames.depth[j] > deepest && frames.total[frames.parent[j]] >= narrowest)
			deepest = frames.depth[j];
	}
	return deepest;
}

function place() {
	const style = getComputedStyle(ui.scroll);

	layout.width = Math.max(1, ui.scroll.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
	layout.deepest = deepestRow(view.zoom);
	/* No lower than before when zoomed, so that the root stays where it was. */
	layout.height = Math.max((layout.deepest + 1) * ROW + 2,
		Math.min((deepestRow(0) + 1) * ROW + 2, ui.scroll.clientHeight));
	ui.picture.setAttribute("height", layout.height);
}

/* The frames of one row that belong to the view, as a range of indexes into rows[depth]. */
function rowRange(depth) {
	const row = frames.rows[depth];
	const zoom = view.zoom;
	const first = (wanted) => {
		let low = 0, high = row.length;

		while (low < high) {
			const middle = (low + high) >> 1;

			if (row[middle] < wanted)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	};

	if (depth < frames.depth[zoom]) {
		let i = zoom;

		while (frames.depth[i] > depth)
			i = frames.parent[i];
		return [first(i), first(i) + 1];
	}
	return [first(zoom), first(frames.end[zoom])];
}

function drawFrame(into, i, x, width) {
	const y = rowTop(frames.depth[i]);
	const gap = width > 4 ? 1 : 0;
	const label = fitted(text(i), width - gap);
	const classes = ["f", look(i)];
	const group = svg("g", {
		"data-frame": i, role: "treeitem", id: "frame" + i, "aria-level": frames.depth[i] + 1,
		"aria-label": text(i) + ", " + percent(frames.total[i], everything),
	}, svg("rect", { x, y, width: width - gap, height: ROW - 1 }));

	if (i < view.zoom && isAncestor(i, view.zoom))
		classes.push("above");
	if (matching && matching[frames.label[i]])
		classes.push("hit");
	group.setAttribute("class", classes.join(" "));
	if (label)
		group.append(svg("text", { x: x + INDENT, y: y + 12 }, label));
	into.append(group);
}

/* Neighbours too narrow to tell apart: one shape, which leads to their caller. */
function drawRemainder(into, depth, remainder) {
	const { x, width, count, caller, hit } = remainder;
	const y = rowTop(depth);

	if (width < NARROWEST)
		return;
	const label = fitted(grouped.format(count) + " narrow frames", width);
	const group = svg("g", { "data-remainder": caller, "data-count": count, class: hit ? "f r hit" : "f r" },
		svg("rect", { x, y, width, height: ROW - 1 }));

	if (label)
		group.append(svg("text", { x: x + INDENT, y: y + 12 }, label));
	into.append(group);
}

function drawRow(into, depth) {
	const [from, to] = rowRange(depth);
	let remainder = null;
	const flush = () => {
		if (remainder)
			drawRemainder(into, depth, remainder);
		remainder = null;
	};

	for (let index = from; index < to; index++) {
		const i = frames.rows[depth][index];
		const [x, width] = span(i);

		if (width >= NARROWEST) {
			flush();
			drawFrame(into, i, x, width);
			continue;
		}
		if (remainder && (remainder.caller !== frames.parent[i] || x > remainder.x + remainder.width + NARROWEST))
			flush();
		remainder ||= { x, width: 0, count: 0, caller: frames.parent[i], hit: false };
		remainder.width = x + width - remainder.x;
		remainder.count++;
		remainder.hit ||= matching !== null && Boolean(matching[frames.label[i]]);
	}
	flush();
}

function drawRing(into) {
	const [x, width] = span(active);

	into.append(svg("rect", { class: "ring", x, y: rowTop(frames.depth[active]), width: Math.max(width, 3), height: ROW - 1 }));
	ui.scroll.setAttribute("aria-activedescendant", "frame" + active);
}

/* Draw the rows that are in sight. */
function draw() {
	const drawn = document.createDocumentFragment();
	const top = ui.scroll.scrollTop - 2 * ROW;
	const bottom = ui.scroll.scrollTop + ui.scroll.clientHeight + 2 * ROW;
	const atTop = Math.floor(top / ROW), atBottom = Math.ceil(bottom / ROW);
	const rows = Math.floor(layout.height / ROW);
	const from = view.inverted ? atTop : rows - atBottom - 1;
	const to = view.inverted ? atBottom : rows - atTop + 1;

	if (!everything)
		return;
	for (let depth = Math.max(0, from); depth <= Math.min(layout.deepest, to); depth++)
		drawRow(drawn, depth);
	drawRing(drawn);
	ui.picture.replaceChildren(drawn);
}

/* Bring a frame's row into sight, with some of its callers. */
function scrollTo(i) {
	const near = Math.max(0, frames.depth[i] - ANCESTORS_IN_SIGHT);
	const height = ui.scroll.clientHeight;

	ui.scroll.scrollTop = view.inverted ? near * ROW : layout.height - near * ROW - height;
}

function keepInSight(i) {
	const top = rowTop(frames.depth[i]);

	if (top < ui.scroll.scrollTop)
		ui.scroll.scrollTop = top - ROW;
	else if (top + 2 * ROW > ui.scroll.scrollTop + ui.scroll.clientHeight)
		ui.scroll.scrollTop = top + 2 * ROW - ui.scroll.clientHeight;
}

function showResult() {
	ui.app.classList.toggle("searching", matching !== null);
	if (!matching) {
		ui.result.textContent = "";
		return;
	}
	const matches = (i) => matching[frames.label[i]];
	const all = "Matched " + percent(weightOf(0, matches), everything);
	const here = percent(weightOf(view.zoom, matches), frames.total[view.zoom]);

	ui.result.textContent = view.zoom ? all + " of all, " + here + " of this view" : all;
}

/* A search is a regular expression if it can be one; small letters match capitals too. */
function applySearch() {
	const wanted = view.search;
	const flags = wanted === wanted.toLowerCase() ? "iu" : "u";
	let expression;

	matching = null;
	ui.search.classList.remove("wrong");
	if (wanted !== "") {
		try {
			expression = new RegExp(wanted, flags);
		} catch (error) {
			expression = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags);
		}
		matching = frames.labels.map((label) => expression.test(label.text));
		ui.search.classList.toggle("wrong", !matching.includes(true));
	}
}

/* Show the view as it now is; with a frame given, scrolled to it. */
function refresh(scrolledTo = -1) {
	applySearch();
	if (ui.search.value !== view.search)
		ui.search.value = view.search;
	ui.reset.disabled = view.zoom === 0 && view.search === "";
	hideTip();
	showResult();
	place();
	if (scrolledTo >= 0)
		scrollTo(scrolledTo);
	draw();
}

/* -- Address and history -- */

function address() {
	const parts = new URLSearchParams();

	if (view.zoom)
		parts.set("zoom", view.zoom);
	if (view.search)
		parts.set("search", view.search);
	if (view.inverted !== invertedAtFirst)
		parts.set("inverted", Number(view.inverted));
	return "#" + parts;
}

function readAddress() {
	const parts = new URLSearchParams(location.hash.slice(1));
	const zoom = Number(parts.get("zoom"));

	view.zoom = Number.isInteger(zoom) && zoom > 0 && zoom < frames.count ? zoom : 0;
	view.search = parts.get("search") || "";
	view.inverted = parts.has("inverted") ? parts.get("inverted") === "1" : invertedAtFirst;
}

/* Where a page may not change its address (some embeddings), zoom and search work without it. */
function remember(method) {
	try {
		history[method]({ zoomsMade }, "", address());
	} catch (error) {
		zoomsMade = 0;
	}
}

function zoomTo(i) {
	if (i !== view.zoom) {
		view.zoom = i;
		zoomsMade++;
		remember("pushState");
	}
	active = i;
	refresh(i);
}

function back() {
	if (zoomsMade > 0)
		history.back();
	else if (view.zoom)
		zoomTo(0);
}

function search(wanted) {
	if (wanted === view.search)
		return;
	view.search = wanted;
	remember("replaceState");
	refresh();
}

function reset() {
	view.search = "";
	zoomTo(0);
	remember("replaceState");
}

function invert() {
	view.inverted = !view.inverted;
	remember("replaceState");
	refresh(view.zoom);
}

function returnToAddress(event) {
	zoomsMade = event.state && event.state.zoomsMade || 0;
	readAddress();
	active = view.zoom;
	refresh(view.zoom);
}

/* -- Tooltip -- */

function frameTip(i) {
	const kind = look(i);
	const everywhere = weightOf(0, (j) => frames.label[j] === frames.label[i]);
	const rows = [["total", percent(frames.total[i], everything) + " of all", duration(frames.total[i]), samples(frames.samples[i])]];

	if (view.zoom)
		rows.push(["", percent(frames.total[i], frames.total[view.zoom]) + " of this view", "", ""]);
	if (frames.own[i])
		rows.push(["own", percent(frames.own[i], everything) + " of all", duration(frames.own[i]), samples(frames.ownSamples[i])]);
	else
		rows.push(["own", "none", "", ""]);
	if (everywhere > frames.total[i])
		rows.push(["everywhere", percent(everywhere, everything) + " of all", duration(everywhere), ""]);
	if (kind === "l" || kind === "j")
		rows.push(["compiled", percent(frames.compiled[i], frames.total[i]) + " of its time", "", ""]);
	else if (LOOKS[kind])
		rows.push(["kind", LOOKS[kind], "", ""]);
	return [html("b", {}, text(i)), table(rows)];
}

function remainderTip(group) {
	const count = Number(group.dataset.count);

	return [html("b", {}, grouped.format(count) + (count === 1 ? " frame" : " frames") + " too narrow to show"),
		"called by " + text(Number(group.dataset.remainder)) + "; a click zooms there, a search finds each"];
}

/* Show a tip near a point, wherever there is room. */
function showTip(content, x, y) {
	const tip = ui.tip;
	const bounds = ui.app.getBoundingClientRect();

	tip.replaceChildren(...content);
	const size = tip.getBoundingClientRect();
	const left = Math.min(x + 14, bounds.width - size.width - 8);
	const below = y + 18;
	const top = below + size.height > bounds.height - 4 ? y - size.height - 12 : below;
	tip.style.transform = "translate(" + Math.max(8, left) + "px, " + Math.max(4, top) + "px)";
	tip.style.visibility = "visible";
}

function hideTip() {
	ui.tip.style.visibility = "hidden";
}

function showActiveTip() {
	const [x, width] = span(active);
	const bounds = ui.picture.getBoundingClientRect();

	showTip(frameTip(active), bounds.left + x + Math.min(width / 2, 200),
		bounds.top + rowTop(frames.depth[active]) + ROW / 2);
}

/* -- Moving by keys -- */

function moveTo(i) {
	active = i;
	keepInSight(i);
	draw();
	showActiveTip();
}

function widestCallee(i) {
	let widest = -1;

	for (let j = i + 1; j < frames.end[i]; j = frames.end[j]) {
		if (widest < 0 || frames.total[j] > frames.total[widest])
			widest = j;
	}
	return widest;
}

/* The next frame in its row that is wide enough to see, or -1. */
function neighbour(i, step) {
	const row = frames.rows[frames.depth[i]];
	const [from, to] = rowRange(frames.depth[i]);

	for (let index = row.indexOf(i) + step; index >= from && index < to; index += step) {
		if (span(row[index])[1] >= NARROWEST)
			return row[index];
	}
	return -1;
}

/* From match to match, callers before callees. */
function nextMatch(step) {
	const zoom = view.zoom;
	const count = frames.end[zoom] - zoom;
	const offset = isAncestor(zoom, active) ? active - zoom : 0;

	if (!matching)
		return -1;
	for (let tried = 1; tried <= count; tried++) {
		const i = zoom + (offset + step * tried + count * (step < 0)) % count;

		if (matching[frames.label[i]])
			return i;
	}
	return -1;
}

function target(key) {
	switch (key) {
	case "ArrowUp":
		return view.inverted ? frames.parent[active] : widestCallee(active);
	case "ArrowDown":
		return view.inverted ? widestCallee(active) : frames.parent[active];
	case "ArrowLeft":
		return neighbour(active, -1);
	case "ArrowRight":
		return neighbour(active, 1);
	case "Home":
		return view.zoom;
	case "n":
		return nextMatch(1);
	case "N":
		return nextMatch(-1);
	default:
		return null;
	}
}

function toggleHelp() {
	ui.help.hidden = !ui.help.hidden;
}

function escape() {
	if (!ui.help.hidden)
		toggleHelp();
	else if (view.search !== "")
		search("");
	else
		back();
	ui.scroll.focus();
}

function searchKey(event) {
	if (event.key === "Escape") {
		escape();
	} else if (event.key === "Enter") {
		search(ui.search.value);
		graphKey({ key: "n" });
	} else {
		return;
	}
	event.preventDefault();
}

/* Keys that mean the same wherever the focus is. Returns false for others. */
function commandKey(event) {
	switch (event.key) {
	case "/":
		ui.search.focus();
		ui.search.select();
		return true;
	case "Escape":
		escape();
		return true;
	case "Backspace":
		back();
		return true;
	case "r":
		reset();
		return true;
	case "i":
		invert();
		return true;
	case "?":
		toggleHelp();
		return true;
	default:
		return false;
	}
}

function graphKey(event) {
	const moved = target(event.key);

	if (event.key === "Enter" || event.key === " ") {
		zoomTo(active);
		showActiveTip();
		return true;
	}
	if (moved === null)
		return false;
	ui.scroll.focus();
	if (moved >= 0)
		moveTo(moved);
	return true;
}

function onKey(event) {
	const inSearch = event.target === ui.search;
	const onButton = event.target instanceof HTMLButtonElement;

	if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key === "f" && !inSearch) {
		ui.search.focus();
		ui.search.select();
		event.preventDefault();
	} else if (event.ctrlKey || event.metaKey || event.altKey) {
		return;
	} else if (inSearch) {
		searchKey(event);
	} else if (commandKey(event) || (!onButton && graphKey(event))) {
		event.preventDefault();
	}
}

/* -- Mouse -- */

function onMove(event) {
	const group = event.target.closest("[data-frame], [data-remainder]");

	if (!group)
		hideTip();
	else if (group.dataset.frame)
		showTip(frameTip(Number(group.dataset.frame)), event.clientX, event.clientY);
	else
		showTip(remainderTip(group), event.clientX, event.clientY);
}

function onClick(event) {
	const group = event.target.closest("[data-frame], [data-remainder]");

	if (group)
		zoomTo(Number(group.dataset.frame || group.dataset.remainder));
}

/* -- Start -- */

let redrawing = false;

function fitWindow() {
	place();
	draw();
}

function redrawSoon() {
	if (redrawing)
		return;
	redrawing = true;
	requestAnimationFrame(() => {
		redrawing = false;
		draw();
	});
}

function listen() {
	let typing;

	ui.picture.addEventListener("mousemove", onMove);
	ui.picture.addEventListener("mouseleave", hideTip);
	ui.picture.addEventListener("click", onClick);
	ui.scroll.addEventListener("scroll", redrawSoon);
	ui.scroll.addEventListener("blur", hideTip);
	ui.search.addEventListener("input", () => {
		clearTimeout(typing);
		typing = setTimeout(() => search(ui.search.value), 120);
	});
	ui.reset.addEventListener("click", reset);
	ui.invert.addEventListener("click", invert);
	ui.helpButton.addEventListener("click", toggleHelp);
	document.addEventListener("keydown", onKey);
	window.addEventListener("popstate", returnToAddress);
	new ResizeObserver(fitWindow).observe(ui.scroll);
}

function start() {
	root.removeAttribute("viewBox");
	root.setAttribute("width", "100%");
	root.setAttribute("height", "100%");
	root.append(svg("foreignObject", { width: "100%", height: "100%" }, ui.app));
	document.getElementById("static").remove();
	if (!everything)
		ui.scroll.replaceChildren(html("p", { class: "empty" }, "No samples"));
	measureFont();
	readAddress();
	active = view.zoom;
	listen();
	refresh(view.zoom);
}

start();
})();
