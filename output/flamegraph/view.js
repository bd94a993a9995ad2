// SPDX-License-Identifier: MIT
/*
 * The view of the recording. The address holds it, so that the browser's back
 * and forward, a reload and a copied link lead to the same view.
 */

const root = document.getElementById("ljspy");
const UNIT = root.dataset.unit;	/* of weights: "time", "bytes" or "objects" */
const IS_TIME = UNIT === "time";
const IS_SAMPLED = root.dataset.sampled === "1";	/* a heap is counted */
/* In order of time, a sample is as wide as the time before it that it stands for. */
const HAS_ORDER = moments !== null && IS_TIME;
const HAS_SOURCE = metadata("files").length > 0;
const [OWN, TOTAL] = IS_TIME ? ["own time", "total time"] : ["own", "total"];
/* A heap has neither lines nor states. */
const COLOURS = [...(recorded.compared ? ["change"] : []), "kind", ...(IS_SAMPLED ? ["state"] : [])];

const VIEW_AT_FIRST = {
	inverted: root.dataset.inverted === "1",	/* callees at the root */
	ordered: false,		/* in order of time */
	sandwich: false,	/* the focus between its callers and callees */
	lines: root.dataset.lines === "1",
	flipped: false,		/* the root at the top */
	open: false,		/* no folded chains */
	map: root.dataset.heatmap === "1",	/* show the heat map */
	cpu: true,		/* show the CPU use over time */
	list: innerWidth >= 1600,	/* show the hottest functions */
	source: root.dataset.source === "1",	/* show source files, not frames: */
	file: -1,		/* ... this one; -1: the hottest, */
	line: -1,		/* ... with this line's callers and callees; 0: of what has no known line, -1: none's */
	colour: COLOURS[0],
	side: NOW,		/* the side whose weights are the widths */
	focus: -1,		/* only stacks through this function, from it on; -1: all */
	zoom: 0,		/* a frame of the tree of this view */
	search: "",
	from: 0,		/* the selected time, in µs after the beginning, */
	to: 0,			/* ... up to this; 0: all */
	process: "",		/* only samples of this pid, */
	thread: "",		/* ... of this tid, */
	phase: "",		/* ... and in this phase; "": any */
};

const view = { ...VIEW_AT_FIRST };
let tree = null;		/* of the view */
let active = 0;			/* the frame that keys act on */
let matching = null;		/* for each label, does it match the search? null without the result of one */
let steps = 0;			/* number of steps back that stay in this file */

/* -- Trees of views -- */

/* The trees made so far, each on first use. */
const trees = new Map();

function newTree() {
	const { inverted, lines, focus, open, side } = view;

	if (view.ordered)
		return chartOf(lines, ...threadOfChart());
	if (view.sandwich)
		return sandwichOf(lines, focus, side);
	if (inverted)
		return treeOfCallers(lines, focus, side);
	const tree = treeOfCallees(lines, focus, side);

	return open || focus >= 0 ? tree : foldChains(tree);
}

function treeOfView() {
	const { inverted, lines, focus, open, side, ordered, sandwich } = view;
	const key = ordered ? ["chart", lines, ...threadOfChart()].join() : [inverted, lines, focus, open, side, sandwich].join();

	if (!trees.has(key))
		trees.set(key, newTree());
	return trees.get(key);
}

/* Call this when the view has changed. */
function applyView() {
	if (view.sandwich && view.focus < 0)
		view.sandwich = false;
	if (view.ordered) {
		view.sandwich = view.inverted = false;
		view.focus = -1;
	}
	if (taken)
		applySelection();
	tree = treeOfView();
	layOut(tree, view.side);
	if (!(view.zoom < tree.count && tree.width[view.zoom] > 0) || tree.isChart || tree.isSandwich)
		view.zoom = 0;
	view.zoom = shownFor(tree, view.zoom);
	matching = matchesOfView();
}

/* -- Search -- */

/*
 * A regular expression can take longer than anybody waits ("(a+)+$"), and nothing ends it where it runs. So it runs in
 * a worker, which is ended after a while.
 */
const SEARCH_MS = 4000;
const TOO_COSTLY = "No result: this expression takes too much time or memory";
const NO_WORKER = "No result: where this page is shown, expressions with *, +, { or many ? and | cannot be searched";
const CHOICES_MAX = 8;

let searched = "";		/* the text of these searches: */
/* for each array of labels: for each label, does it match? null while a worker looks, or if none could. */
const searches = new Map();

/*
 * Runs in the worker, and says when it begins: on a busy machine workers start late. Firefox throws an error where an
 * expression needs much memory.
 */
function testLabels({ data: { text, flags, names } }) {
	const expression = new RegExp(text, flags);

	postMessage("begun");
	try {
		postMessage(names.map((name) => expression.test(name)));
	} catch (error) {
		postMessage(null);
	}
}

function stopWorker(search) {
	search.worker?.terminate();
	search.worker = null;
}

/* End a worker's search with what it has found, or with the reason why it has found nothing. */
function endSearch(search, matches, trouble) {
	if (!search.worker)
		return;
	stopWorker(search);
	Object.assign(search, { matches, trouble });
	showMatches();
}

function startWorker(search, flags) {
	const worker = new Worker("data:text/javascript," + encodeURIComponent("onmessage = " + testLabels));

	search.worker = worker;
	worker.onmessage = ({ data }) => {
		if (data === "begun")
			setTimeout(() => endSearch(search, null, TOO_COSTLY), SEARCH_MS);
		else
			endSearch(search, data, data ? "" : TOO_COSTLY);
	};
	worker.onerror = () => endSearch(search, null, NO_WORKER);
	worker.postMessage({ text: searched, flags, names: search.labels.map((label) => label.text) });
}

/* Without repetition, there are at most two to the number of choices ways to match from one place on. */
function isQuick(text) {
	return !/[*+{]/.test(text) && (text.match(/[?|]/g) || []).length <= CHOICES_MAX;
}

/* null if the text is no valid expression. */
function expressionOf(text, flags) {
	try {
		return new RegExp(text, flags);
	} catch (error) {
		return null;
	}
}

/*
 * A search is plain text if a label has it as it stands ("string.gsub [builtin]"), else a regular expression, or
 * plain text if it is no valid one. Without capitals, it ignores case.
 */
function startSearch(search) {
	const flags = searched === searched.toLowerCase() ? "iu" : "u";
	const test = (expression) => search.labels.map((label) => expression.test(label.text));
	const matches = test(new RegExp(searched.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), flags));
	const expression = matches.includes(true) ? null : expressionOf(searched, flags);

	if (!expression || isQuick(searched)) {
		search.matches = expression ? test(expression) : matches;
		return;
	}
	try {
		startWorker(search, flags);
	} catch (error) {
		search.trouble = NO_WORKER;
	}
}

function searchIn(labels) {
	if (!searches.has(labels)) {
		searches.set(labels, { labels, matches: null, worker: null, trouble: "" });
		startSearch(searches.get(labels));
	}
	return searches.get(labels);
}

/* The searches whose matches the view shows. The root of a sandwich by line is a function. */
function searchesOfView() {
	if (searched === "")
		return [];
	return (tree.byLine && tree.isSandwich ? [true, false] : [tree.byLine]).map((byLine) => searchIn(labelsOf(byLine)));
}

/* For each label of the tree, does it match the search? null without a search, and without the result of one. */
function matchesOfView() {
	if (searched !== view.search) {
		for (const search of searches.values())
			stopWorker(search);
		searches.clear();
		searched = view.search;
	}
	const [inTree, inFunctions] = searchesOfView().map((search) => search.matches);

	if (!inTree || inFunctions === null)
		return null;
	return inFunctions ? [...inTree, inFunctions[view.focus]] : inTree;
}

function isSearching() {
	return searchesOfView().some((search) => search.worker);
}

/* Why a search has no result, and gets none; "": it has or gets one. */
function troubleOfSearch() {
	return searchesOfView().map((search) => search.trouble).find((trouble) => trouble) ?? "";
}

/* A folded chain matches if one of its frames does. */
function isMatch(i) {
	const last = tree.chains.get(i) ?? i;
	let found = false;

	for (let j = i; matching !== null && j <= last && !found; j++)
		found = matching[tree.label[j]];
	return found;
}

/* -- Which samples -- */

let applied = "";		/* the selection whose weights the frames have; at first those of the file, which lack what is left out */

/* Call this when the view has changed, before making its tree. */
function applySelection() {
	const { from, to, process, thread, phase } = view;
	const wanted = [from, to, process, thread, phase].join();
	const chosen = chosenThreads();

	if (wanted === applied)
		return;
	applied = wanted;
	weighFrames((k) => chosen[taken.thread[k]] !== false && (!to || taken.time[k] >= from && taken.time[k] < to));
	/* Charts of time always show all samples of a thread. */
	for (const key of trees.keys()) {
		if (!key.startsWith("chart"))
			trees.delete(key);
	}
}

/* For each thread in its phase: is it of the chosen process, thread and phase? */
function chosenThreads() {
	const { process, thread, phase } = view;

	return taken.threads.map((one) => (!process || one.pid === process) && (!thread || one.tid === thread)
		&& (!phase || phaseName(one) === phase));
}

function phaseName(thread) {
	return thread.phase || "no phase";
}

/* The different values of key() for the threads in the recording, each with one of its threads. */
function choices(key) {
	const found = new Map();

	for (const thread of taken ? taken.threads : [])
		found.set(key(thread), thread);
	return found;
}

/* The pid and tid whose chart is shown: of the chosen threads the one with most samples. */
function threadOfChart() {
	const chosen = chosenThreads();
	const counts = new Map();

	for (let k = 0; k < moments.count; k++) {
		if (!chosen[moments.thread[k]])
			continue;
		const { pid, tid } = moments.threads[moments.thread[k]];
		const key = pid + " " + tid;

		counts.set(key, (counts.get(key) || 0) + 1);
	}
	const [most] = [...counts].sort(([, a], [, b]) => b - a);

	return most ? most[0].split(" ") : ["", ""];
}

function isSelective() {
	return view.to > 0 || view.process !== "" || view.thread !== "" || view.phase !== "";
}

/* -- Frames of the tree -- */

function everything() {
	return tree.width[0];
}

function labelOf(i) {
	return tree.labels[tree.label[i]];
}

function labelText(i) {
	return labelOf(i).text;
}

/* The lowest and the highest frame of a folded chain in one label; else the frame's. */
function shownText(i) {
	const last = tree.chains.get(i);

	return last === undefined ? labelText(i) : labelText(i) + " … " + labelText(last) + " (" + (last - i + 1) + " frames)";
}

function isAncestor(i, of) {
	return i <= of && of < tree.end[i];
}

/* Are the frames on frame i its callers? They are in an inverted tree, and above the middle of a sandwich. */
function growsToCallers(i) {
	return tree.isSandwich ? i > 0 && i < tree.callees : view.inverted;
}

/* The names of a stack, outermost caller first, without the root, unless that is the function of a sandwich. */
function stackOf(i) {
	const last = tree.isSandwich ? 0 : 1;
	const names = [];

	for (let frame = i; frame >= last; frame = tree.caller[frame])
		names.push(labelText(frame));
	return growsToCallers(i) ? names : names.reverse();
}

function share(side, i) {
	const whole = tree.total[side][0];

	return whole ? tree.total[side][i] / whole : 0;
}

/* -- Looks -- */

const KINDS = {
	l: "Lua, interpreted", j: "Lua, compiled", b: "builtin", c: "C function",
	n: "native", v: "VM", t: "trace", m: "allocated", x: "lost", r: "left out",
};
const CHANGES = { p: "half or less", q: "less", s: "no clear change", y: "more", z: "double or more" };
const STATE_NAMES = {
	n: "no Lua", i: "interpreted", j: "compiled", c: "C", g: "garbage collection",
	r: "recording a trace", o: "optimising a trace", a: "assembling a trace", e: "leaving a trace", u: "unknown",
};
/* The look of each state. Some states share one. */
const STATE_LOOKS = { n: "n", i: "l", j: "j", c: "c", g: "g", r: "k", o: "k", a: "k", e: "e", u: "u" };
const STATE_LEGEND = {
	l: "interpreted", j: "compiled", c: "C", g: "garbage collection", k: "compiling", e: "leaving a trace",
	n: "no Lua", u: "unknown",
};
const LEGENDS = { kind: KINDS, state: STATE_LEGEND, change: CHANGES };

/* A Lua function counts as compiled if more than half of its weight was. */
function kindLook(i) {
	const kind = tree.labels[tree.label[i]].look;

	return kind === "l" && tree.compiled[i] > tree.width[i] / 2 ? "j" : kind;
}

/* The weights of the states of a frame by look, heaviest first. */
function stateLooks(i) {
	const weights = new Map();

	for (const [state, weight] of statesOf(tree, i)) {
		const look = STATE_LOOKS[STATES[state]];

		weights.set(look, (weights.get(look) || 0) + weight);
	}
	return [...weights].sort(([, a], [, b]) => b - a);
}

/*
 * The same rules as color_of_change() in output/views/color.c, for the functions that are known to have changed.
 * A heap is counted, not sampled.
 */
function changeLook(i) {
	const [now, before] = IS_SAMPLED ? [share(NOW, i), share(BEFORE, i)] : [tree.total[NOW][i], tree.total[BEFORE][i]];
	const [allNow, allBefore] = [tree.samples[NOW][0], tree.samples[BEFORE][0]];
	const both = (tree.samples[NOW][i] + tree.samples[BEFORE][i]) / (allNow + allBefore || 1);
	const variance = both * (1 - both) * ((allNow && 1 / allNow) + (allBefore && 1 / allBefore));
	const larger = Math.max(now, before), smaller = Math.min(now, before);

	if (recorded.functions[tree.labels[tree.label[i]].function].same || (now - before) ** 2 <= (IS_SAMPLED ? 9 * variance : 0) || larger < 1.1 * smaller)
		return "s";
	if (larger >= 2 * smaller)
		return now > before ? "z" : "p";
	return now > before ? "y" : "q";
}

function look(i) {
	if (i === 0 && !tree.isSandwich)
		return "a";
	if (view.colour === "change")
		return changeLook(i);
	if (view.colour === "state")
		return (stateLooks(i)[0] || ["u"])[0];
	return kindLook(i);
}

/* -- Address and history -- */

function address(shown = view) {
	const parts = new URLSearchParams();

	for (const [key, first] of Object.entries(VIEW_AT_FIRST)) {
		if (shown[key] !== first)
			parts.set(key, typeof first === "boolean" ? Number(shown[key]) : shown[key]);
	}
	return "#" + parts;
}

function readAddress() {
	const parts = new URLSearchParams(location.hash.slice(1));
	const number = (key, from, to) => {
		const given = Number(parts.get(key) ?? NaN);

		return Number.isInteger(given) && given >= from && given < to ? given : VIEW_AT_FIRST[key];
	};

	for (const [key, first] of Object.entries(VIEW_AT_FIRST)) {
		if (typeof first === "boolean")
			view[key] = parts.has(key) ? parts.get(key) === "1" : first;
	}
	view.colour = COLOURS.includes(parts.get("colour")) ? parts.get("colour") : VIEW_AT_FIRST.colour;
	view.side = number("side", NOW, recorded.compared ? 2 : 1);
	view.source &&= HAS_SOURCE;
	view.file = number("file", 0, metadata("files").length);
	view.line = number("line", 0, Infinity);
	view.focus = number("focus", 0, recorded.functions.length);
	view.zoom = number("zoom", 0, Infinity);
	view.search = parts.get("search") || "";
	view.from = moments ? number("from", 0, Infinity) : 0;
	view.to = moments ? number("to", view.from + 1, Infinity) : 0;
	if (!view.to)
		view.from = 0;
	view.ordered &&= HAS_ORDER;
	for (const [key, name] of [["process", (one) => one.pid], ["thread", (one) => one.tid], ["phase", phaseName]])
		view[key] = choices(name).has(parts.get(key)) ? parts.get(key) : "";
	applyView();
}

/*
 * If the page may not change its address, everything but going back works: never in some embeddings, and in some browsers
 * not too often. A step that it could not add is none; those before are still there.
 */
function remember(method, shown = view) {
	if (method === "replaceState" && address(shown) === location.hash && history.state && history.state.steps === steps)
		return;
	try {
		history[method]({ steps }, "", address(shown));
	} catch (error) {
		if (method === "pushState")
			steps--;
	}
}

/* Change the view as a step, which back undoes. */
function stepTo(change) {
	const before = address();

	Object.assign(view, change);
	if (address() === before)
		return;
	steps++;
	remember("pushState");
	applyView();
}

/* Change the view without a step. */
function turnTo(change) {
	Object.assign(view, change);
	remember("replaceState");
	applyView();
}
