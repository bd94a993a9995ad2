// SPDX-License-Identifier: MIT
/*
 * The source view: the files of the recording, the time of each of their lines, and for a
 * line its callers and callees. A line's own time is that of stacks whose innermost Lua
 * frame is at it, so that it has what the line calls that is no Lua, by state of the VM.
 */

const COLD_MAX = 400;		/* so many successive lines without time are shown; more are folded, */
const COLD_LEFT = 20;		/* ... but for these next to lines with time */
const NEIGHBOURS_MAX = 8;	/* callers or callees of a line */

/* -- Data -- */

/* The files: name, note, functions, and lines of text, null without one. None unless asked for. */
const files = metadata("files").map((line, number) => {
	const [name, note, functions] = line.split("\t");
	const text = document.getElementById("source-" + number);

	return { number, name: name || "?", note, functions: functions.split(" ").map(Number), lines: text ? text.textContent.split("\n").slice(0, -1) : null };
});

/*
 * The places: lines of files, each once, though several functions may share one. ofLine
 * has the place of each recorded line, -1 for none. The line is 0 if it is not known.
 */
const places = loadPlaces();

function loadPlaces() {
	const fileOf = new Map(files.flatMap((file) => file.functions.map((f) => [f, file.number])));
	const found = new Map();
	const made = { ofLine: new Int32Array(recorded.lines.length).fill(-1), file: [], line: [] };

	recorded.lines.forEach((label, i) => {
		const file = fileOf.get(label.function);
		const number = label.text.match(/:(\d+)$/);

		if (file === undefined)
			return;
		const line = number ? Number(number[1]) : 0;
		const key = file + " " + line;

		if (!found.has(key)) {
			found.set(key, made.file.length);
			made.file.push(file);
			made.line.push(line);
		}
		made.ofLine[i] = found.get(key);
	});
	return made;
}

function placeOf(i) {
	return places.ofLine[recorded.line[i]];
}

function findPlace(file, line) {
	return places.file.findIndex((other, place) => other === file && places.line[place] === line);
}

/* Own and total weight of places and files, and own weight of places by state, of one side. */
function weighPlaces(side) {
	const count = places.file.length;
	const made = {
		own: new Float64Array(count), total: new Float64Array(count), states: new Float64Array(count * STATES.length),
		fileOwn: new Float64Array(files.length), fileTotal: new Float64Array(files.length),
	};
	const inner = new Int32Array(recorded.count);	/* the place of the innermost Lua frame up to each */
	const open = new Int32Array(count), fileOpen = new Int32Array(files.length);
	const path = [];

	for (let i = 0; i < recorded.count; i++) {
		const caller = recorded.caller[i], place = placeOf(i), file = places.file[place];

		while (path.length && path[path.length - 1] !== caller) {
			const left = placeOf(path.pop());

			if (left >= 0) {
				open[left]--;
				fileOpen[places.file[left]]--;
			}
		}
		path.push(i);
		inner[i] = place >= 0 ? place : caller >= 0 ? inner[caller] : -1;
		if (recorded.side[i] === side) {
			if (inner[i] >= 0) {
				made.own[inner[i]] += recorded.own[i];
				made.fileOwn[places.file[inner[i]]] += recorded.own[i];
				for (let state = 0; state < STATES.length; state++)
					made.states[inner[i] * STATES.length + state] += recorded.states[i * STATES.length + state];
			}
			if (place >= 0 && !open[place])
				made.total[place] += recorded.total[i];
			if (place >= 0 && !fileOpen[file])
				made.fileTotal[file] += recorded.total[i];
		}
		if (place >= 0) {
			open[place]++;
			fileOpen[file]++;
		}
	}
	return made;
}

/*
 * Who calls a line's function on its way to this line, and what the line calls, each with
 * its weight. Of nested frames at the line, the outermost counts.
 */
function neighboursOf(place) {
	const callers = new Map(), callees = new Map();
	const within = new Uint8Array(recorded.count);
	const add = (sums, line, weight) => sums.set(line, (sums.get(line) || 0) + weight);

	for (let i = 0; i < recorded.count; i++) {
		const caller = recorded.caller[i];

		within[i] = caller >= 0 ? within[caller] : 0;
		if (recorded.side[i] !== view.side)
			continue;
		if (caller >= 0 && placeOf(caller) === place)
			add(callees, recorded.line[i], recorded.total[i]);
		if (within[i] || placeOf(i) !== place)
			continue;
		within[i] = 1;
		if (caller > 0)
			add(callers, recorded.line[caller], recorded.total[i]);
	}
	const sorted = (sums) => [...sums].filter(([, weight]) => weight > 0).sort(([, a], [, b]) => b - a);

	return { callers: sorted(callers), callees: sorted(callees) };
}

/* The text of a place; "" if there is none. */
function textOfPlace(place) {
	const { lines } = files[places.file[place]];

	return (lines && lines[places.line[place] - 1] || "").trim();
}

/* The place of frame i of the tree: its line, or the one with most of its weight. -1 if it has none. */
function placeOfFrame(i) {
	if (!files.length || !i)
		return -1;
	if (tree.byLine)
		return places.ofLine[tree.label[i]] ?? -1;
	const weights = new Map();

	for (let j = 0; tree.of && j < recorded.count; j++) {
		if (tree.of[j] === i && recorded.side[j] === view.side)
			weights.set(placeOf(j), (weights.get(placeOf(j)) || 0) + recorded.total[j]);
	}
	const [heaviest] = [...weights].sort(([, a], [, b]) => b - a);

	return heaviest ? heaviest[0] : -1;
}

/* A row for a frame's card: its source line, where there is a text. */
function sourceRows(i) {
	const place = placeOfFrame(i);
	const text = place < 0 ? "" : textOfPlace(place);

	return text ? [["line " + places.line[place], html("code", {}, text)]] : [];
}

/* -- The page -- */

const fileBody = html("tbody", {}), lineBody = html("tbody", {});
const fileBox = html("section", { class: "hottest files", "aria-label": "Files", tabindex: "0" },
	html("table", {}, html("thead", {}, html("tr", {}, ...["own", "total", "file"].map((head) => html("th", { scope: "col" }, head)))), fileBody));
const fileNote = html("p", { class: "note" });
const lineBox = html("section", { class: "lines", "aria-label": "Lines", tabindex: "0" }, fileNote,
	html("table", {}, html("thead", {}, html("tr", {}, ...["line", "own", "total", "VM", "source"].map((head) => html("th", { scope: "col", class: "of-" + head.toLowerCase() }, head)))), lineBody));
const sourceBox = html("div", { class: "source", hidden: "" }, fileBox, lineBox);

let unfolded = new Set();	/* first lines of the folded ones that are shown, */
let unfoldedFile = -1;		/* ... of this file */

/* Show a line of a file in the source view; line -1: go to the one with most own time. */
function openSource(file, line) {
	changeView({ source: true, file, line });
	showLine();
}

/* The file of the view; at first the one with most own time. */
function shownFile(weighed) {
	return view.file >= 0 ? view.file : files.reduce((best, { number }) => weighed.fileOwn[number] > weighed.fileOwn[best] ? number : best, 0);
}

function fileRow(file, weighed, whole, shown) {
	const name = html("button", { type: "button", title: file.name }, html("span", { class: "name" }, file.name));

	name.addEventListener("click", () => openSource(file.number, -1));
	return html("tr", file.number === shown ? { class: "chosen" } : {}, html("td", {}, shortPercent(weighed.fileOwn[file.number], whole) || "0"),
		html("td", {}, shortPercent(weighed.fileTotal[file.number], whole) || "0"), html("td", {}, name));
}

/* A bar of the own weight by state, as wide as its share of the heaviest line. */
function stateBar(weighed, place, heaviest) {
	const looks = new Map();
	const bar = svg("svg", { class: "states", width: 60, height: 12, "aria-hidden": "true" });
	let x = 0;

	for (let state = 0; state < STATES.length; state++) {
		const look = STATE_LOOKS[STATES[state]], weight = weighed.states[place * STATES.length + state];

		if (weight > 0)
			looks.set(look, (looks.get(look) || 0) + weight);
	}
	for (const [look, weight] of [...looks].sort(([, a], [, b]) => b - a)) {
		const width = 60 * weight / heaviest;

		bar.append(svg("rect", { class: "f " + look, x, width, height: 12 }));
		x += width;
	}
	return bar;
}

function statesText(weighed, place) {
	const states = Array.from(STATES, (state, k) => [STATE_NAMES[state], weighed.states[place * STATES.length + k]]);

	return heaviest(states, weighed.own[place]);
}

function shareCell(kind, weight, whole, most) {
	const cell = html("td", { class: "share " + kind }, shortPercent(weight, whole));

	if (weight > 0)
		cell.style.setProperty("--part", (100 * weight / most).toFixed(1) + "%");
	return cell;
}

/* What a listing needs of its file: the place of each line with time, and the sums. */
function listingOf(file, weighed) {
	const made = { file, weighed, placeOf: new Map(), whole: 0, mostOwn: 0, mostTotal: 0, hottest: 0 };

	for (let i = 0; i < recorded.count; i++)
		made.whole += recorded.side[i] === view.side ? recorded.own[i] : 0;
	places.file.forEach((other, place) => {
		const own = weighed.own[place], total = weighed.total[place];

		if (other !== file.number || !total)
			return;
		made.placeOf.set(places.line[place], place);
		if (own > made.mostOwn || !made.mostOwn && total > made.mostTotal)
			made.hottest = places.line[place];
		made.mostOwn = Math.max(made.mostOwn, own);
		made.mostTotal = Math.max(made.mostTotal, total);
	});
	return made;
}

function lineRow(listing, line) {
	const { file, weighed, placeOf, whole } = listing;
	const place = placeOf.get(line);
	const code = html("td", { class: "code" }, line && file.lines && file.lines[line - 1] || "");

	if (place === undefined)
		return html("tr", {}, html("td", { class: "number" }, line || "?"), html("td", {}), html("td", {}), html("td", { class: "vm" }), code);
	const number = html("button", { type: "button", "aria-expanded": line === view.line, title: "Line " + (line || "unknown") + ": its callers and callees" }, line || "?");

	number.addEventListener("click", () => chooseLine(line === view.line ? -1 : line));
	return html("tr", { class: "timed" + (line === view.line ? " chosen" : ""), "data-line": line },
		html("td", { class: "number" }, number), shareCell("own", weighed.own[place], whole, listing.mostOwn),
		shareCell("total", weighed.total[place], whole, listing.mostTotal),
		html("td", { class: "vm", title: weighed.own[place] ? statesText(weighed, place) : "" }, ...(weighed.own[place] ? [stateBar(weighed, place, listing.mostOwn)] : [])), code);
}

/* A caller or callee of a line, with its weight; a click shows its line, or the function in the graph. */
function neighbourItem([line, weight], whole) {
	const label = recorded.lines[line], place = places.ofLine[line];
	const name = html("button", { type: "button" }, label.text);

	name.addEventListener("click", () => place >= 0 ? openSource(places.file[place], places.line[place]) : sandwichFunction(label.function));
	return html("li", {}, percent(weight, whole) + " ", name);
}

function neighbourList(title, neighbours, whole) {
	const shown = neighbours.slice(0, NEIGHBOURS_MAX).map((one) => neighbourItem(one, whole));

	if (neighbours.length > NEIGHBOURS_MAX)
		shown.push(html("li", {}, "… " + (neighbours.length - NEIGHBOURS_MAX) + " more"));
	return html("div", {}, html("h2", {}, title), shown.length ? html("ul", {}, ...shown) : html("p", {}, "none"));
}

/* The row below a chosen line: figures, callers, callees, and the way to the flame graph. */
function detailRow(listing) {
	const { weighed, whole, placeOf } = listing;
	const place = placeOf.get(view.line);
	const { callers, callees } = neighboursOf(place);
	const own = weighed.own[place];
	const graph = html("button", { type: "button" }, "Show in the flame graph");
	const functions = new Set(recorded.lines.filter((_, i) => places.ofLine[i] === place).map((label) => label.function));
	const sandwiches = [...functions].slice(0, NEIGHBOURS_MAX).map((f) => {
		const made = html("button", { type: "button" }, "Callers and callees of " + recorded.functions[f].name);

		made.addEventListener("click", () => sandwichFunction(f));
		return made;
	});

	graph.addEventListener("click", () => showInGraph(place));
	return html("tr", { class: "detail" }, html("td", { colspan: 5 }, html("div", { class: "inner" },
		html("p", {}, "total " + percent(weighed.total[place], whole) + " (" + amount(weighed.total[place]) + "), own "
			+ (own ? percent(own, whole) + " (" + amount(own) + "): " + statesText(weighed, place) : "none")),
		html("div", { class: "neighbours" }, neighbourList("Callers", callers, whole), neighbourList("Calls", callees, whole)),
		html("div", { class: "actions" }, graph, ...sandwiches))));
}

/* Successive lines of a listing: first, last, are they folded, and by which number to unfold them. */
function stretchesOf(listing) {
	const hot = [...listing.placeOf.keys()].sort((a, b) => a - b);
	const last = listing.file.lines ? Math.max(listing.file.lines.length, hot[hot.length - 1] || 0) : 0;
	const made = [];
	const addCold = (first, end, left, right) => {
		if (end - first + 1 <= COLD_MAX || unfolded.has(first)) {
			made.push([first, end, false]);
			return;
		}
		made.push([first, first + left - 1, false], [first + left, end - right, true, first], [end - right + 1, end, false]);
	};
	let next = 1;

	if (!listing.file.lines)
		return hot.map((line) => [line, line, false]);
	for (const line of hot) {
		if (line > next)
			addCold(next, line - 1, next > 1 ? COLD_LEFT : 0, COLD_LEFT);
		made.push([line, line, false]);
		next = line + 1;
	}
	if (last >= next)
		addCold(next, last, COLD_LEFT, 0);
	return made;
}

function foldedRow(first, last, key) {
	const open = html("button", { type: "button" }, "… " + grouped.format(last - first + 1) + " lines without " + UNIT);

	open.addEventListener("click", () => {
		unfolded.add(key);
		showSource();
	});
	return html("tr", {}, html("td", { colspan: 5 }, open));
}

function listingRows(listing) {
	const rows = [];

	for (const [first, last, folded, key] of stretchesOf(listing)) {
		if (folded) {
			rows.push(foldedRow(first, last, key));
			continue;
		}
		for (let line = first; line <= last; line++) {
			rows.push(lineRow(listing, line));
			if (line === view.line && listing.placeOf.has(line))
				rows.push(detailRow(listing));
		}
	}
	return rows;
}

let hottestLine = 0;	/* of the shown file */

/* Call this when the view has changed. */
function showSource() {
	const graph = sourceBox.parentNode.querySelector(".graph");

	sourceBox.hidden = !view.source;
	graph.hidden = view.source;
	if (sourceBox.hidden)
		return;
	const weighed = weighPlaces(view.side);
	const file = files[shownFile(weighed)];
	const listing = listingOf(file, weighed);

	if (unfoldedFile !== file.number)
		unfolded = new Set();
	unfoldedFile = file.number;
	hottestLine = listing.hottest;
	fileBody.replaceChildren(...files.filter(({ number }) => weighed.fileTotal[number] > 0 || number === file.number)
		.sort((a, b) => weighed.fileOwn[b.number] - weighed.fileOwn[a.number] || weighed.fileTotal[b.number] - weighed.fileTotal[a.number])
		.map((one) => fileRow(one, weighed, listing.whole, file.number)));
	fileNote.replaceChildren(html("b", {}, file.name), ...(file.note ? [" ", html("span", {}, "(" + file.note + ")")] : []));
	lineBody.replaceChildren(...listingRows(listing));
}

/* Scroll to the chosen line, or the hottest one. */
function showLine() {
	const line = lineBody.querySelector("[data-line=\"" + (view.line >= 0 ? view.line : hottestLine) + "\"]");

	if (view.source)
		lineBox.scrollTop = line ? Math.max(0, line.offsetTop - lineBox.clientHeight / 3) : 0;
}

function chooseLine(line) {
	const top = lineBox.scrollTop;

	turnTo({ line });
	showSource();
	lineBox.scrollTop = top;
	const button = lineBody.querySelector("[data-line=\"" + line + "\"] button");

	if (button)
		button.focus();
}

/* Zoom the flame graph of lines to the heaviest frame at a place. */
function showInGraph(place) {
	let heaviest = -1;

	changeView({ ...NOTHING_CHOSEN, source: false, lines: true, inverted: false, ordered: false, open: true, from: view.from, to: view.to,
		process: view.process, thread: view.thread, phase: view.phase });
	for (let i = 0; i < recorded.count; i++) {
		if (recorded.side[i] === view.side && placeOf(i) === place && (heaviest < 0 || recorded.total[i] > recorded.total[heaviest]))
			heaviest = i;
	}
	if (heaviest < 0)
		return;
	turnTo({ zoom: tree.of[heaviest] });
	active = view.zoom;
	refresh(view.zoom);
	scroller.focus();
}

/* Show the source view, or the flame graph again. */
function turnSource() {
	if (!files.length)
		return;
	changeView({ source: !view.source, zoom: view.source ? 0 : view.zoom });
	showLine();
}
