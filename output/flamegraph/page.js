// SPDX-License-Identifier: MIT
/*
 * The page around the picture: header, controls, legend, and changes of the view.
 */

const KEYS = [
	["Click, Enter", "zoom to a frame"],
	["Esc, Backspace", "back; Esc first closes what is open and ends a search"],
	["Arrows, Home", "move between frames"],
	["/, Ctrl-F", "search for text or a regular expression"],
	["n, Shift-n", "next, previous match"],
	["f", IS_SAMPLED ? "only this function, wherever it is called" : "only this step, wherever it is"],
	["i", IS_SAMPLED ? "inverted: callees at the root, callers on them" : "inverted: what is held at the root, what holds it on it"],
	["s", IS_SAMPLED ? "sandwich: a function, its callers above, its callees below" : "sandwich: a step, what holds it above, what it holds below"],
	...(HAS_ORDER ? [["o", "order of time, of one thread"], ["+, -, Shift-Left, Shift-Right", "in order of time: zoom and move; also Ctrl-wheel, wheel sideways"]] : []),
	...(moments ? [["m", "heat map of time"]] : []),
	...(cpu ? [["p", "CPU use over time"]] : []),
	["h", IS_SAMPLED ? "list of the hottest functions" : "list of the largest steps"],
	...(HAS_SOURCE ? [["v", "source files, with the " + UNIT + " of their lines"]] : []),
	["e", "the folded frames that all samples share"],
	...(IS_SAMPLED ? [["l", "lines or functions"]] : []),
	["u", "upside down: the root at the top"],
	...(COLOURS.length > 1 ? [["k", "colours: " + COLOURS.map((colour) => ({ change: "change", kind: "kind of frame", state: "state of the VM" })[colour]).join(", ")]] : []),
	...(recorded.compared ? [["b", "widths of before or now"]] : []),
	...(moments ? [["w", "the whole time again"], ["t", "copy the chosen time, as options of ljspy report"]] : []),
	["d", "dark or light"],
	["c, Shift-c", "copy the frame's name, its stack"],
	["Right click, tap", "these for a frame"],
	["r", "reset zoom, search, function and what is chosen"],
	["?", "this help"],
];

/* -- Words -- */

const grouped = new Intl.NumberFormat("en");

function percent(part, whole) {
	return (whole ? 100 * part / whole : 0).toFixed(2) + "\u00a0%";
}

/* A short percentage for the legend: empty for 0, and never "0 %" for more. */
function shortPercent(part, whole) {
	const share = whole ? 100 * part / whole : 0;

	return share === 0 ? "" : share < 0.1 ? "< 0.1 %" : share.toFixed(share < 10 ? 1 : 0) + " %";
}

/* The sizes of each unit, the last one for all that is smaller; see output/sample/weight.h. */
const SIZES = {
	time: [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
	bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "bytes"]],
	objects: [[1, "objects"]],
};

function amount(weight, unit = UNIT) {
	const sizes = SIZES[unit];
	const [size, name] = sizes.find(([size]) => weight >= size) || sizes[sizes.length - 1];

	return (sizes.length > 1 ? Number((weight / size).toPrecision(3)) : grouped.format(weight)) + " " + name;
}

function samples(count) {
	return grouped.format(count) + (IS_SAMPLED ? " sample" : " object") + (count === 1 ? "" : "s");
}

/* -- Elements -- */

function table(rows) {
	return html("table", {}, ...rows.map((cells) =>
		html("tr", {}, ...cells.map((cell) => html("td", {}, cell)))));
}

function button(key, text, title, act) {
	const made = html("button", { type: "button", title: title + " (" + key + ")", "data-key": key }, text);

	made.addEventListener("click", () => act());
	return made;
}

function aboutBlock() {
	const [headline, figures, ...details] = metadata("about");
	const paragraph = (line) => html("p", { title: line, class: line.startsWith("$ ") ? "command" : "" }, line);

	return html("details", { class: "about" },
		html("summary", {}, html("h1", { title: headline }, headline), paragraph(figures || "")), ...details.map(paragraph));
}

/* A list of the processes, threads or phases, of which one can be chosen; null if there is but one. */
function chooser(key, title, nameOf, textOf) {
	const found = choices(nameOf);

	if (found.size < 2)
		return null;
	const made = html("select", { "aria-label": title, title, "data-choose": key }, html("option", { value: "" }, "all " + title.toLowerCase()),
		...[...found].map(([name, thread]) => html("option", { value: name }, textOf(thread))));

	made.addEventListener("change", () => chooseSamples({ [key]: made.value }));
	return made;
}

const choosers = [
	chooser("process", "Processes", (one) => one.pid, (one) => (one.process || "process") + " (pid " + one.pid + ")"),
	chooser("thread", "Threads", (one) => one.tid, (one) => (one.thread || one.process || "thread") + " (tid " + one.tid + ")"),
	chooser("phase", "Phases", phaseName, phaseName),
].filter((one) => one);

const ui = {
	search: html("input", { type: "search", placeholder: "Search text or regex", "aria-label": "Search frames",
				spellcheck: "false", autocomplete: "off", autocapitalize: "off" }),
	result: html("output", { "aria-live": "polite" }),
	focus: button("f", "", "Show everything again", () => focusOn(0)),
	range: button("w", "", "Show the whole time again", () => chooseEverything()),
	copyRange: button("t", "Copy time", "Copy the chosen time, as options of ljspy report", () => copyTime()),
	inverted: button("i", "Inverted", IS_SAMPLED ? "Callees at the root, their callers on them" : "What is held at the root, what holds it on it",
		() => turn("inverted")),
	sandwich: button("s", "Sandwich", IS_SAMPLED ? "A function, its callers above, its callees below" : "A step, what holds it above, what it holds below",
		() => turnSandwich()),
	ordered: button("o", "Time order", "In order of time, of one thread", () => turnOrder()),
	map: button("m", "Heat map", "When samples were taken", () => turnPanel("map")),
	cpu: button("p", "CPU", "CPU use over time", () => turnPanel("cpu")),
	list: button("h", IS_SAMPLED ? "Hottest" : "Largest", IS_SAMPLED ? "List of the hottest functions" : "List of the largest steps", () => turnPanel("list")),
	source: button("v", "Source", "Source files, with the " + UNIT + " of their lines", () => turnSource()),
	lines: button("l", "Lines", "Tell lines apart, not only functions", () => turn("lines")),
	flipped: button("u", "Root on top", "Upside down", () => flip()),
	side: button("b", "Before", "Widths of before", () => changeView({ side: view.side === NOW ? BEFORE : NOW, zoom: 0 })),
	colour: html("select", { "aria-label": "Colours", title: "Colours (k)" }, ...COLOURS.map((colour) =>
		html("option", { value: colour }, { kind: "Colour: kind", state: "Colour: VM state", change: "Colour: change" }[colour]))),
	dark: button("d", "Dark", "Dark or light", () => changeTheme()),
	reset: button("r", "Reset", "Reset zoom, search, function and what is chosen", () => reset()),
	help: button("?", "?", "Keys", () => toggleHelp()),
	menu: html("button", { type: "button", class: "menu", "aria-expanded": "false" }, "Menu"),
	legend: html("div", { class: "legend", role: "list", "aria-label": "Legend" }),
	card: html("div", { class: "card", role: "tooltip" }),
	keys: html("div", { class: "keys", role: "dialog", "aria-label": "Keys", hidden: "", tabindex: "0" }, table(KEYS)),
};
ui.help.setAttribute("aria-label", "Keys");
ui.tools = html("div", { class: "tools" }, ui.inverted, ui.sandwich, ...(HAS_ORDER ? [ui.ordered] : []), ...(moments ? [ui.map] : []), ...(cpu ? [ui.cpu] : []), ui.list, ...(HAS_SOURCE ? [ui.source] : []),
	...(IS_SAMPLED ? [ui.lines] : []), ui.flipped, ...(recorded.compared ? [ui.side] : []), ...(COLOURS.length > 1 ? [ui.colour] : []), ui.dark, ui.reset, ui.help);
ui.app = html("div", { class: "app", role: "main" }, aboutBlock(),
	html("div", { class: "bar" },
		html("div", { class: "find" }, ui.search, ui.menu, ...choosers, ...(moments ? [ui.range, ui.copyRange] : []), ui.focus, ui.result),
		ui.tools),
	heatBox, stripBox, html("div", { class: "main" }, html("div", { class: "graph" }, minimap, ruler, scroller), sourceBox, hottestBox),
	html("div", { class: "foot" }, ui.legend, heatScale), ui.keys, ui.card);

/* -- Legend -- */

/* The source view always shows states. */
function legendColour() {
	return view.source ? "state" : view.colour;
}

function ownLooks(i) {
	if (legendColour() === "state")
		return Array.from(STATES, (state, k) => [STATE_LOOKS[state], recorded.states[i * STATES.length + k]]).filter(([, weight]) => weight > 0);
	const kind = recorded.functions[recorded.function[i]].look;

	return [[kind === "l" && recorded.mark[i] & COMPILED ? "j" : kind, recorded.own[i]]];
}

/* Own weight by look, of all looks that occur, even if their own weight is 0. */
function ownWeights() {
	const weights = new Map();

	for (let i = 0; i < recorded.count; i++) {
		for (const [name, weight] of recorded.caller[i] < 0 ? [] : ownLooks(i))
			weights.set(name, (weights.get(name) || 0) + (recorded.side[i] === view.side ? weight : 0));
	}
	return weights;
}

/* The looks of a heap's frames: see heap_profile.c. */
const HEAP_KINDS = { l: "functions", c: "coroutines", n: "all else" };

let legendShown = "";

/* Show each colour with the share of samples that end in it. */
function showLegend() {
	const wanted = [legendColour(), view.side, tree.byLine, tree.cut, tree.isChart, applied].join();

	if (wanted === legendShown)
		return;
	legendShown = wanted;
	const isChange = legendColour() === "change";
	const names = IS_SAMPLED || isChange ? LEGENDS[legendColour()] : HEAP_KINDS;
	const weights = isChange ? new Map(Object.keys(names).map((name) => [name, 0])) : ownWeights();
	const whole = [...weights.values()].reduce((sum, weight) => sum + weight, 0);

	ui.legend.replaceChildren(...Object.keys(names).filter((name) => weights.has(name)).map((name) =>
		html("span", { role: "listitem", title: isChange ? "Change of share" : IS_SAMPLED ? "Share of samples that end here" : "Share of their own" },
			svg("svg", { "aria-hidden": "true" }, svg("rect", { class: "f " + name, width: 12, height: 12, rx: 2 })),
			names[name], html("i", {}, shortPercent(weights.get(name) || 0, whole)))));
	if (tree.byLine)
		ui.legend.append(html("span", { role: "listitem" }, "≈ nearest known line"));
	if (tree.cut)
		ui.legend.append(html("span", { role: "listitem" }, tree.isChart ? "too many samples: the last are left out" : "too many callers: the outermost are left out"));
}

/* -- Showing the view -- */

let typing = 0;			/* the timer of a search for letters that have just been typed; 0: all are in the view */
let passing = "";		/* a message shown in place of the search result until the next update */

function showResult() {
	ui.app.classList.toggle("searching", matching !== null);
	ui.search.classList.toggle("wrong", matching ? !matching.includes(true) : troubleOfSearch() !== "");
	if (!matching) {
		ui.result.textContent = passing || troubleOfSearch() || (isSearching() ? "Searching …" : whyNoStrip());
		return;
	}
	const matches = (label) => matching[label];
	/* Both sides of a sandwich have stacks that are whole only in the recording. */
	const isWhole = view.focus < 0 || view.sandwich;
	const all = isWhole ? shareOf(tree.byLine, view.side, matching, view.focus) : weightOf(tree, 0, matches) / everything();
	const here = view.zoom ? percent(weightOf(tree, view.zoom, matches), tree.width[view.zoom]) : "";

	ui.result.textContent = passing || "Matched " + percent(all, 1) + (here ? " of all, " + here + " of this view" : "");
}

function say(text) {
	passing = text;
	showResult();
	passing = "";
}

function showControls() {
	const press = (control, pressed) => control.setAttribute("aria-pressed", pressed);

	if (!typing && ui.search.value !== view.search)
		ui.search.value = view.search;
	ui.reset.disabled = view.zoom === 0 && view.search === "" && view.focus < 0 && !isSelective();
	ui.range.hidden = !view.to;
	ui.copyRange.hidden = !view.to;
	if (view.to)
		ui.range.textContent = "only " + seconds(view.from).replace("s", "") + " to " + seconds(view.to).replace("s", " s");
	ui.focus.hidden = view.focus < 0;
	if (view.focus >= 0)
		ui.focus.textContent = "only " + recorded.functions[view.focus].text;
	ui.colour.value = view.colour;
	for (const chosen of choosers)
		chosen.value = view[chosen.dataset.choose];
	press(ui.inverted, view.inverted);
	press(ui.sandwich, view.sandwich);
	press(ui.ordered, view.ordered);
	press(ui.map, view.map);
	press(ui.cpu, view.cpu);
	press(ui.list, view.list);
	press(ui.source, view.source);
	press(ui.lines, view.lines);
	press(ui.flipped, view.flipped);
	press(ui.side, view.side === BEFORE);
	press(ui.dark, root.classList.contains("dark"));
}

/* Show the current view; if a frame is given, scroll to it. */
function refresh(scrolledTo = -1) {
	showControls();
	showLegend();
	showResult();
	closeCard();
	refreshHeat();
	refreshStrip();
	showHottest();
	showSource();
	heatScale.hidden = heatBox.hidden;
	redraw(scrolledTo);
}

/* Lay out and draw the frames; if a frame is given, scroll to it. */
function redraw(scrolledTo = -1) {
	if (view.source)
		return;
	minimap.hidden = !isMinimapShown();
	place();
	drawMinimap();
	if (scrolledTo >= 0)
		scrollTo(scrolledTo);
	draw();
}

/* Show the result of a search that took its time: what the user has typed or opened meanwhile stays. */
function showMatches() {
	matching = matchesOfView();
	showResult();
	refreshHeat();
	if (!view.source)
		draw();
	goToAwaited();
}

/* -- Changes of the view -- */

let stepsBack = 0;		/* a timer, while the browser has been asked for a step back and has not made it yet */

/* It has been made, or is not going to be: a browser drops it where the address has changed too often. */
function forgetStepBack() {
	clearTimeout(stepsBack);
	stepsBack = 0;
}

function changeView(change) {
	searchTyped();
	stepTo(change);
	forgetStepBack();
	active = view.zoom;
	refresh(view.zoom);
}

/* Choose a time, process, thread or phase. Do not keep the zoom of an inverted tree: it numbers its frames by weight. */
function chooseSamples(change) {
	changeView({ ...change, zoom: view.inverted ? 0 : view.zoom });
}

/* Zoom to a frame: in a chart to its time, in a sandwich to its function. A folded chain opens. */
function zoomTo(i) {
	const times = [tree.start[i], tree.start[i] + tree.width[i]].map((ns) => ns / 1000);

	if (tree.chains.has(i))
		changeView({ open: true, zoom: 0 });
	else if (tree.isSandwich)
		sandwichFunction(i ? labelOf(i).function : view.focus);
	else if (!tree.isChart)
		changeView({ zoom: i });
	else
		changeView(i ? { from: Math.floor(times[0]), to: Math.max(Math.ceil(times[1]), Math.floor(times[0]) + SHORTEST_US) }
			: { from: 0, to: 0 });
}

/* Switch a boolean of the view. Reset the zoom, because frames have other numbers in another tree. */
function turn(key) {
	changeView({ source: false, ordered: false, sandwich: false, [key]: !view[key], zoom: 0 });
}

function turnOrder() {
	if (HAS_ORDER)
		changeView({ source: false, ordered: !view.ordered, sandwich: false, inverted: false, focus: -1, zoom: 0 });
}

function sandwichFunction(focus) {
	changeView({ source: false, sandwich: true, ordered: false, focus, zoom: 0 });
}

/* Put the active frame's function between its callers and callees; for the root, the hottest one. */
function turnSandwich() {
	const [hottest = -1] = hottestFunctions(weighFunctions(view.side)).filter((f) => !"xr".includes(recorded.functions[f].look));

	if (view.sandwich)
		changeView({ sandwich: false, focus: -1, zoom: 0 });
	else
		sandwichFunction(active > 0 ? labelOf(active).function : view.focus >= 0 ? view.focus : hottest);
}

/* Show or hide the heat map, the CPU use or the list. */
function turnPanel(key) {
	turnTo({ [key]: !view[key] });
	refresh();
}

function turnChains() {
	changeView({ open: !view.open, zoom: 0 });
}

function flip() {
	turnTo({ flipped: !view.flipped });
	refresh(active);
}

function changeColour(colour) {
	turnTo({ colour });
	refresh();
}

/* Show only stacks through the function of a frame; for the root, show everything again. */
function focusOn(i) {
	changeView({ source: false, focus: i > 0 ? labelOf(i).function : -1, sandwich: false,
		ordered: view.ordered && i === 0, zoom: 0 });
}

function search(wanted) {
	if (wanted === view.search) {
		remember("replaceState");	/* the address may have letters that were taken back */
		return;
	}
	turnTo({ search: wanted });
	refresh();
}

function forgetTyped() {
	clearTimeout(typing);
	typing = 0;
}

function searchNow() {
	forgetTyped();
	search(ui.search.value);
}

/* Browsers let an address change 100 or 200 times in half a minute, and what the user does besides needs its share. */
const LETTERS_REMEMBERED = 50, LETTERS_WITHIN_MS = 30000;
let rememberedAt = [];		/* when the address got letters of late, in ms */

function mayRememberLetter() {
	const now = performance.now();

	rememberedAt = rememberedAt.filter((then) => now - then < LETTERS_WITHIN_MS);
	if (rememberedAt.length >= LETTERS_REMEMBERED)
		return false;
	rememberedAt.push(now);
	return true;
}

/*
 * Search in a moment, as more letters may follow. The address has them now: a browser tells of its step back after it
 * has left, and forward leads to what the user has typed.
 */
function searchSoon() {
	clearTimeout(typing);
	typing = setTimeout(searchTyped, 120);
	if (mayRememberLetter())
		remember("replaceState", { ...view, search: ui.search.value });
}

/* Search for letters that have just been typed now, and not in a moment: what the user does next is to find them. */
function searchTyped() {
	if (typing)
		searchNow();
}

const NOTHING_CHOSEN = { zoom: 0, focus: -1, sandwich: false, from: 0, to: 0, process: "", thread: "", phase: "" };

/* A step asked for before the one under way is made could lead to another page. */
function back() {
	searchTyped();
	if (stepsBack)
		return;
	if (steps > 0) {
		stepsBack = setTimeout(forgetStepBack, 1000);
		history.back();
	} else if (view.zoom || view.focus >= 0 || isSelective()) {
		changeView({ ...NOTHING_CHOSEN });
	}
}

function reset() {
	changeView({ ...NOTHING_CHOSEN, search: "" });
}

function readHistory() {
	steps = history.state && history.state.steps || 0;
	forgetStepBack();
	readAddress();
	active = view.zoom;
}

/* Letters just typed were for the entry that has been left, whose address has them. */
function returnToAddress() {
	forgetTyped();
	readHistory();
	refresh(view.zoom);
}

/* -- Light and dark -- */

const darkPreferred = matchMedia("(prefers-color-scheme: dark)");
const THEME = "ljspy-theme";

/* If the page may not store anything, the choice lasts as long as the page. */
function storedTheme() {
	try {
		return localStorage.getItem(THEME);
	} catch (error) {
		return null;
	}
}

let theme = storedTheme();	/* null: the preferred one */
/* While the page is laid out for paper: the window's size, what it was scrolled to, and how far the frames are shifted instead. */
let onPaper = null;

function applyTheme() {
	root.classList.toggle("dark", !onPaper && (theme ? theme === "dark" : darkPreferred.matches));
	drawHeat();
	drawStrip();
	drawMinimap();
	showControls();
}

function changeTheme() {
	theme = root.classList.contains("dark") ? "light" : "dark";
	applyTheme();
	try {
		localStorage.setItem(THEME, theme);
	} catch (error) {
		/* See storedTheme(). */
	}
}

/* -- On paper -- */

const page = svg("foreignObject", { width: "100%", height: "100%" }, ui.app);
const printed = matchMedia("print");
const LOWEST_SHEET = 1.29;	/* the height of a sheet, for a width of 1: Letter's */

function shift(box, by) {
	for (const child of box.children)
		child.style.transform = by ? "translateY(" + -by + "px)" : "";
}

function scrollAsBefore() {
	onPaper.shifted = null;
	for (const [box, top] of onPaper.tops) {
		shift(box, 0);
		box.scrollTop = top;
	}
}

/* Firefox prints a copy of the page, which it does not scroll: shift what is in each box. */
function shiftScrolled() {
	onPaper.shifted = scroller.scrollTop;
	for (const [box] of onPaper.tops) {
		shift(box, box.scrollTop);
		box.scrollTop = 0;
	}
}

/* Lay out the page for sheets of this height, for a width of 1. Rows out of sight are shown where they cost no width. */
function fitToSheet(sheet) {
	const { width, height, hidden } = onPaper;
	const whole = Math.max(height, Math.min(height + hidden, Math.floor(width * sheet)));

	root.setAttribute("viewBox", "0 0 " + width + " " + whole);
	root.setAttribute("preserveAspectRatio", "xMinYMin meet");
	page.setAttribute("width", width);
	page.setAttribute("height", whole);
	scrollAsBefore();
	redraw();
	shiftScrolled();
}

/*
 * Print what the window shows, as large as the sheet allows: a sheet has another size than the window, and what was
 * drawn for the window would be cut. Ink is dark on white. The size of a sheet is not known before onSheet().
 */
function toPaper() {
	const scrolled = view.source ? lineBox : scroller;

	if (onPaper)
		return;
	onPaper = { width: innerWidth, height: innerHeight, hidden: scrolled.scrollHeight - scrolled.clientHeight,
		tops: [scroller, hottestBox, fileBox, lineBox].map((box) => [box, box.scrollTop]) };
	applyTheme();
	fitToSheet(LOWEST_SHEET);
}

/* In Firefox, which tells of paper before it copies the page, this one still has the window's size. */
function onSheet() {
	const { width, height } = root.getBoundingClientRect();

	if (onPaper && printed.matches && (Math.round(width) !== onPaper.width || Math.round(height) !== onPaper.height))
		fitToSheet(height / width);
}

function fromPaper() {
	if (!onPaper)
		return;
	root.removeAttribute("viewBox");
	root.removeAttribute("preserveAspectRatio");
	page.setAttribute("width", "100%");
	page.setAttribute("height", "100%");
	scrollAsBefore();
	onPaper = null;
	applyTheme();
	redraw();
}

/* -- Start -- */

let redrawing = false;

function redrawSoon() {
	if (redrawing)
		return;
	redrawing = true;
	requestAnimationFrame(() => {
		redrawing = false;
		draw();
	});
}

/*
 * Tell the rules of flamegraph.css how wide the page is: media queries would tell of the sheet on paper, and not every
 * browser knows those of containers.
 */
function noteWidth() {
	root.classList.toggle("narrow", ui.app.clientWidth <= 800);
	root.classList.toggle("small", ui.app.clientWidth <= 640);
}

function listen() {
	picture.addEventListener("pointermove", onMove);
	picture.addEventListener("pointerleave", () => pinned || closeCard());
	picture.addEventListener("pointerdown", (event) => {
		touched = event.pointerType === "touch";
	});
	picture.addEventListener("click", onClick);
	scroller.addEventListener("contextmenu", onMenu);
	scroller.addEventListener("scroll", redrawSoon);
	ui.search.addEventListener("input", searchSoon);
	ui.colour.addEventListener("change", () => changeColour(ui.colour.value));
	document.addEventListener("keydown", onKey);
	document.addEventListener("pointerdown", () => { awaited = null; });
	window.addEventListener("popstate", returnToAddress);
	window.addEventListener("beforeprint", toPaper);
	window.addEventListener("afterprint", fromPaper);
	printed.addEventListener("change", onSheet);
	darkPreferred.addEventListener("change", applyTheme);
	ui.menu.addEventListener("click", () => ui.menu.setAttribute("aria-expanded", ui.app.classList.toggle("menu-open")));
	listenToHeat();
	listenToStrip();
	listenToMinimap();
	const resized = new ResizeObserver(() => {
		noteWidth();
		refreshHeat();
		refreshStrip();
		redraw();
	});

	resized.observe(ui.app);
	resized.observe(scroller);
}

function start() {
	const isEmpty = !recorded.own.some((weight) => weight > 0);	/* before the address chooses samples */

	root.removeAttribute("viewBox");
	root.setAttribute("width", "100%");
	root.setAttribute("height", "100%");
	root.classList.add("live");
	root.append(page);
	document.getElementById("static").remove();
	noteWidth();
	readHistory();
	if (isEmpty)
		scroller.replaceChildren(html("p", { class: "empty" }, IS_SAMPLED ? "No samples" : "No objects"));
	measureFont();
	place();
	applyTheme();
	listen();
	refresh(view.zoom);
	showLine();
}

start();
