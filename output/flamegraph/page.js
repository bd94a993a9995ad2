// SPDX-License-Identifier: MIT
/*
 * The page around the picture: header, controls, legend, the card of a frame,
 * keys, mouse and touch.
 */

const KEYS = [
	["Click, Enter", "zoom to a frame"],
	["Esc, Backspace", "back; Esc first closes what is open and ends a search"],
	["Arrows, Home", "move between frames"],
	["/, Ctrl-F", "search for text or a regular expression"],
	["n, Shift-n", "next, previous match"],
	["f", "only this function, wherever it is called"],
	["i", "inverted: callees at the root, callers on them"],
	["l", "lines or functions"],
	["u", "upside down: the root at the top"],
	["k", "colours: " + COLOURS.map((colour) => ({ change: "change", kind: "kind of frame", state: "state of the VM" })[colour]).join(", ")],
	...(recorded.compared ? [["b", "widths of before or now"]] : []),
	...(heat ? [["w", "the whole time again"], ["t", "copy the chosen time, as options of ljspy report"]] : []),
	["d", "dark or light"],
	["c, Shift-c", "copy the frame's name, its stack"],
	["Right click, tap", "these for a frame"],
	["r", "reset zoom, search and function"],
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

function amount(weight) {
	const sizes = SIZES[UNIT];
	const [size, unit] = sizes.find(([size]) => weight >= size) || sizes[sizes.length - 1];

	return (sizes.length > 1 ? Number((weight / size).toPrecision(3)) : grouped.format(weight)) + " " + unit;
}

function samples(count) {
	return grouped.format(count) + (IS_TIME ? " sample" : " object") + (count === 1 ? "" : "s");
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
	const block = html("details", { class: "about" },
		html("summary", {}, html("h1", {}, headline), paragraph(figures || "")), ...details.map(paragraph));

	block.open = innerWidth > 640;
	return block;
}

const ui = {
	search: html("input", { type: "search", placeholder: "Search text or regex", "aria-label": "Search frames",
				spellcheck: "false", autocomplete: "off", autocapitalize: "off" }),
	result: html("output", { "aria-live": "polite" }),
	focus: button("f", "", "Show everything again", () => focusOn(0)),
	range: button("w", "", "Show the whole time again", () => chooseEverything()),
	copyRange: button("t", "Copy time", "Copy the chosen time, as options of ljspy report", () => copyTime()),
	inverted: button("i", "Inverted", "Callees at the root, their callers on them", () => turn("inverted")),
	lines: button("l", "Lines", "Tell lines apart, not only functions", () => turn("lines")),
	flipped: button("u", "Root on top", "Upside down", () => flip()),
	side: button("b", "Before", "Widths of before", () => changeView({ side: view.side === NOW ? BEFORE : NOW, zoom: 0 })),
	colour: html("select", { "aria-label": "Colours", title: "Colours (k)" }, ...COLOURS.map((colour) =>
		html("option", { value: colour }, { kind: "Colour: kind", state: "Colour: VM state", change: "Colour: change" }[colour]))),
	dark: button("d", "Dark", "Dark or light", () => changeTheme()),
	reset: button("r", "Reset", "Reset zoom, search and function", () => reset()),
	help: button("?", "?", "Keys", () => toggleHelp()),
	legend: html("div", { class: "legend", role: "list", "aria-label": "Legend" }),
	card: html("div", { class: "card", role: "tooltip" }),
	keys: html("div", { class: "keys", role: "dialog", "aria-label": "Keys", hidden: "" }, table(KEYS)),
};
ui.help.setAttribute("aria-label", "Keys");
ui.app = html("div", { class: "app" }, aboutBlock(),
	html("div", { class: "bar" },
		html("div", { class: "find" }, ui.search, ...(heat ? [ui.range] : []), ui.focus, ui.result),
		html("div", { class: "tools" }, ...(heat ? [ui.copyRange] : []), ui.inverted, ui.lines, ui.flipped, ...(recorded.compared ? [ui.side] : []),
			ui.colour, ui.dark, ui.reset, ui.help)),
	ui.legend, ...(heat ? [heatBox] : []), scroller, ui.keys, ui.card);

/* -- Legend -- */

function ownLooks(i) {
	if (view.colour === "state")
		return (recorded.pairs[i] || []).map(([state, weight]) => [STATE_LOOKS[STATES[state]], weight]);
	const kind = recorded.functions[functionOf(i)].look;

	return [[kind === "l" && recorded.mark[i] & COMPILED ? "j" : kind, recorded.own[i]]];
}

/* The kinds in this profile. The legend names them even if their own weight is 0. */
function kindsSeen() {
	const seen = new Set();

	for (let i = 1; i < recorded.count; i++)
		ownLooks(i).forEach(([name]) => seen.add(name));
	return seen;
}

let legendShown = "";

/* Show each colour with the share of samples that end in it. */
function showLegend() {
	const wanted = [view.colour, tree.byLine, tree.cut, view.from, view.to].join();

	if (wanted === legendShown)
		return;
	legendShown = wanted;
	/* The colours of a heap's frames mean nothing, but in a comparison. */
	if (!IS_TIME && view.colour !== "change")
		return ui.legend.replaceChildren();
	const names = LEGENDS[view.colour];
	const weights = view.colour === "change" ? new Map() : ownWeights(ownLooks);
	const seen = view.colour === "change" ? new Set(Object.keys(names)) : kindsSeen();
	const whole = [...weights.values()].reduce((sum, weight) => sum + weight, 0);

	ui.legend.replaceChildren(...Object.keys(names).filter((name) => seen.has(name)).map((name) =>
		html("span", { role: "listitem", title: view.colour === "change" ? "Change of share" : "Share of samples that end here" },
			svg("svg", { "aria-hidden": "true" }, svg("rect", { class: "f " + name, width: 12, height: 12, rx: 2 })),
			names[name], html("i", {}, shortPercent(weights.get(name) || 0, whole)))));
	if (tree.byLine)
		ui.legend.append(html("span", { role: "listitem" }, "≈ nearest known line"));
	if (tree.cut)
		ui.legend.append(html("span", { role: "listitem" }, "too many callers: the outermost are left out"));
}

/* -- Showing the view -- */

let passing = "";		/* a message shown in place of the search result until the next update */

function showResult() {
	const matches = (label) => matching[label];

	ui.app.classList.toggle("searching", matching !== null);
	ui.search.classList.toggle("wrong", matching !== null && !matching.includes(true));
	if (!matching) {
		ui.result.textContent = passing;
		return;
	}
	const all = view.focus < 0 ? shareOf(tree, view.side, matches) : weightOf(tree, 0, matches) / everything();
	const here = percent(weightOf(tree, view.zoom, matches), tree.width[view.zoom]);
	const text = "Matched " + percent(all, 1);

	ui.result.textContent = passing || (view.zoom ? text + " of all, " + here + " of this view" : text);
}

function say(text) {
	passing = text;
	showResult();
	passing = "";
}

function showControls() {
	const press = (control, pressed) => control.setAttribute("aria-pressed", pressed);

	if (ui.search.value !== view.search)
		ui.search.value = view.search;
	ui.reset.disabled = view.zoom === 0 && view.search === "" && view.focus < 0 && !view.to;
	ui.range.hidden = !view.to;
	ui.copyRange.disabled = !view.to;
	if (view.to)
		ui.range.textContent = "only " + seconds(view.from).replace("s", "") + " to " + seconds(view.to).replace("s", " s");
	ui.focus.hidden = view.focus < 0;
	if (view.focus >= 0)
		ui.focus.textContent = "only " + recorded.functions[view.focus].text;
	ui.colour.value = view.colour;
	press(ui.inverted, view.inverted);
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
	place();
	if (scrolledTo >= 0)
		scrollTo(scrolledTo);
	draw();
}

/* -- Changes of the view -- */

function changeView(change) {
	stepTo(change);
	active = view.zoom;
	refresh(view.zoom);
}

function zoomTo(i) {
	changeView({ zoom: i });
}

/* Switch a boolean of the view. Reset the zoom, because frames have other numbers in another tree. */
function turn(key) {
	changeView({ [key]: !view[key], zoom: 0 });
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
	changeView({ focus: i > 0 ? tree.labels[tree.label[i]].function : -1, zoom: 0 });
}

function search(wanted) {
	if (wanted === view.search)
		return;
	turnTo({ search: wanted });
	refresh();
}

function back() {
	if (steps > 0)
		history.back();
	else if (view.zoom || view.focus >= 0 || view.to)
		changeView({ zoom: 0, focus: -1, from: 0, to: 0 });
}

function reset() {
	changeView({ zoom: 0, search: "", focus: -1, from: 0, to: 0 });
}

function readHistory() {
	steps = history.state && history.state.steps || 0;
	readAddress();
	active = view.zoom;
}

function returnToAddress() {
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

function applyTheme(theme) {
	root.classList.toggle("dark", theme ? theme === "dark" : darkPreferred.matches);
	drawHeat();
	showControls();
}

function changeTheme() {
	const theme = root.classList.contains("dark") ? "light" : "dark";

	applyTheme(theme);
	try {
		localStorage.setItem(THEME, theme);
	} catch (error) {
		/* See storedTheme(). */
	}
}

/* -- The card of a frame -- */

/* The four heaviest of pairs of a name and a weight, with their shares. */
function heaviest(pairs, whole) {
	const sorted = pairs.filter(([, weight]) => weight / whole >= 0.0005).sort(([, a], [, b]) => b - a);
	const told = sorted.slice(0, 4).map(([name, weight]) => name + " " + percent(weight, whole));

	return told.join(", ") + (sorted.length > 4 ? ", …" : "");
}

/* The weight of a frame by line of its function. Empty in an inverted tree. */
function linesOf(i) {
	const weights = new Map();

	for (let j = 0; tree.of && j < recorded.count; j++) {
		if (tree.of[j] !== i || recorded.side[j] !== NOW)
			continue;
		const line = recorded.lines[recorded.line[j]].text.match(/:(\d+|\?)$/);

		if (line)
			weights.set(line[1] + ":", (weights.get(line[1] + ":") || 0) + recorded.total[j]);
	}
	return [...weights];
}

function weightRows(i) {
	const side = view.side;
	const rows = [["total", percent(tree.width[i], everything()) + " of all", amount(tree.width[i]),
		       samples(tree.samples[side][i])]];
	const own = tree.own[i];

	if (view.zoom)
		rows.push(["", percent(tree.width[i], tree.width[view.zoom]) + " of this view", "", ""]);
	if (view.inverted)
		rows.push(["", tree.depth[i] < 2 ? OWN : OWN + " of " + labelText(ownerOf(i)) + " called this way", "", ""]);
	else if (side === NOW)
		rows.push(own ? ["own", percent(own, everything()) + " of all", amount(own), samples(tree.ownSamples[i])]
			: ["own", "none", "", ""]);
	return rows;
}

/* In an inverted tree, the frame at depth 1 below i, whose own time its callers divide. */
function ownerOf(i) {
	while (tree.depth[i] > 1)
		i = tree.caller[i];
	return i;
}

function changeRow(i) {
	const [now, before] = [share(NOW, i), share(BEFORE, i)];
	const points = (100 * (now - before)).toFixed(2);
	const change = changeLook(i) === "s" ? ", no clear change" : "";

	return ["change", percent(before, 1) + " before, " + percent(now, 1) + " now (" + (points > 0 ? "+" : "") + points + " points" + change + ")"];
}

function detailRows(i) {
	const { look: kind, function: f } = tree.labels[tree.label[i]];
	const whole = tree.total[NOW][i];
	const rows = [];
	const states = [...(tree.states[i] || []).entries()].map(([state, weight]) => [STATE_NAMES[STATES[state]], weight]);
	const lines = tree.byLine || kind !== "l" && kind !== "n" && kind !== "c" ? [] : linesOf(i);

	if (kind === "l")
		rows.push(["compiled", percent(tree.compiled[i], whole) + " of its time"]);
	else if (KINDS[kind])
		rows.push(["kind", KINDS[kind]]);
	if (states.length)
		rows.push(["VM", heaviest(states, states.reduce((sum, [, weight]) => sum + weight, 0))]);
	if (lines.length)
		rows.push(["lines", heaviest(lines, whole)]);
	if (tree.byLine && f !== undefined && labelText(i) !== recorded.functions[f].text)
		rows.push(["in", recorded.functions[f].text]);
	if (tree.nearest[i])
		rows.push(["certainty", "nearest known line in " + percent(tree.nearest[i], whole)]);
	if (tree.functionOnly[i])
		rows.push(["certainty", "function only in " + percent(tree.functionOnly[i], whole)]);
	return rows;
}

function frameContent(i) {
	const label = tree.label[i];
	const everywhere = weightOf(tree, 0, (other) => other === label);
	const rows = weightRows(i);

	if (everywhere > tree.width[i] && !view.inverted)
		rows.push(["everywhere", percent(everywhere, everything()) + " of all", amount(everywhere), ""]);
	const details = (recorded.compared ? [changeRow(i)] : []).concat(detailRows(i));

	return [html("b", {}, labelText(i)), table(rows), table(details)];
}

function remainderContent(i, count) {
	return [html("b", {}, grouped.format(count) + " frames too narrow to show"),
		(view.inverted ? "callers of " : "called by ") + labelText(tree.caller[i]) + "; a click zooms there, a search finds each"];
}

function actionButtons(i) {
	const act = (text, doIt) => {
		const made = html("button", { type: "button" }, text);

		made.addEventListener("click", () => {
			closeCard();
			doIt();
			scroller.focus();
		});
		return made;
	};

	return html("div", { class: "actions" }, act("Zoom", () => zoomTo(i)),
		...(i > 0 ? [act("Only this function", () => focusOn(i))] : []),
		act("Search it", () => search(labelText(i).replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))),
		act("Copy name", () => copy(labelText(i), "name")),
		act("Copy stack", () => copy(stackOf(i).join("\n"), "stack")));
}

let pinned = false;		/* the card stays until the user closes it */
let told = -1;			/* the frame that the card describes */

function closeCard() {
	pinned = false;
	told = -1;
	ui.card.style.visibility = "hidden";
	ui.card.classList.remove("pinned");
	ui.card.setAttribute("role", "tooltip");
	markHovered(-1);
}

/* Put the card near a point, where there is room. */
function placeCard(x, y) {
	const bounds = ui.app.getBoundingClientRect();
	const size = ui.card.getBoundingClientRect();
	const left = Math.min(x + 14, bounds.width - size.width - 8);
	const below = y + 18;
	const top = below + size.height > bounds.height - 4 ? y - size.height - 12 : below;

	ui.card.style.transform = "translate(" + Math.max(8, left) + "px, " + Math.max(4, top) + "px)";
	ui.card.style.visibility = "visible";
}

function showCard(i, x, y) {
	const remainder = remainderAround(i);

	if (told !== i) {
		ui.card.replaceChildren(...(remainder && i !== active ? remainderContent(i, remainder[0]) : frameContent(i)));
		markHovered(i);
		told = i;
	}
	placeCard(x, y);
}

/* Keep the card open. On a small screen it is at the bottom. */
function pinCard(content, x, y) {
	ui.card.replaceChildren(...content);
	ui.card.classList.add("pinned");
	ui.card.setAttribute("role", "dialog");
	pinned = true;
	placeCard(x, y);
}

/* Open the card of a frame with its actions. */
function openMenu(i, x, y) {
	active = i;
	draw();
	markHovered(i);
	pinCard([...frameContent(i), actionButtons(i)], x, y);
}

/* A point of the window on the active frame. */
function pointOfActive() {
	const [x, width] = span(active);
	const bounds = picture.getBoundingClientRect();

	return [bounds.left + x + Math.min(width / 2, 200), bounds.top + rowTop(tree.depth[active]) + ROW / 2];
}

/* -- Copying -- */

/* If the browser does not let the page copy, show the text so that the user can copy it. */
async function copy(text, what) {
	try {
		await navigator.clipboard.writeText(text);
		say("Copied the " + what);
	} catch (error) {
		const area = html("textarea", { readonly: "", rows: Math.min(12, text.split("\n").length), "aria-label": "To copy" });

		area.value = text;
		pinCard([html("b", {}, "Ctrl-C copies the " + what), area], ...pointOfActive());
		area.select();
	}
}

function copyTime() {
	if (view.to)
		copy(rangeOptions(), "time");
}

/* -- Moving by keys -- */

function moveTo(i) {
	active = i;
	keepInSight(i);
	draw();
	closeCard();
	showCard(i, ...pointOfActive());
}

function widestCallee(i) {
	let widest = -1;

	for (let j = i + 1; j < tree.end[i]; j = tree.end[j]) {
		if (tree.width[j] > 0 && (widest < 0 || tree.width[j] > tree.width[widest]))
			widest = j;
	}
	return widest;
}

/* The next frame in its row that is wide enough to see, or -1. */
function neighbour(i, step) {
	const row = tree.rows[tree.depth[i]];
	const [from, to] = rowRange(tree.depth[i]);

	for (let index = firstIndex(row, (frame) => frame >= i) + step; index >= from && index < to; index += step) {
		if (span(row[index])[1] >= NARROWEST)
			return row[index];
	}
	return -1;
}

/* The next or previous match, callers before callees; -1 if there is none. */
function nextMatch(step) {
	const { zoom } = view;
	const count = tree.end[zoom] - zoom;
	const offset = isAncestor(zoom, active) ? active - zoom : 0;

	for (let tried = 1; tried <= count; tried++) {
		const i = zoom + (offset + step * tried + count * (step < 0)) % count;

		if (isMatch(i) && tree.width[i] > 0)
			return i;
	}
	return -1;
}

function target(key) {
	switch (key) {
	case "ArrowUp":
		return view.flipped ? tree.caller[active] : widestCallee(active);
	case "ArrowDown":
		return view.flipped ? widestCallee(active) : tree.caller[active];
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

/* Handle a key for frames. Returns false for other keys. */
function frameKey(key) {
	if (!everything())
		return false;
	if (key === "Enter" || key === " ") {
		zoomTo(active);
		showCard(active, ...pointOfActive());
		return true;
	}
	const moved = target(key);

	if (moved === null)
		return false;
	scroller.focus();
	if (moved >= 0)
		moveTo(moved);
	return true;
}

/* -- Commands by keys -- */

function toggleHelp() {
	ui.keys.hidden = !ui.keys.hidden;
}

function findKey() {
	ui.search.focus();
	ui.search.select();
}

function escape() {
	if (!ui.keys.hidden)
		toggleHelp();
	else if (pinned)
		closeCard();
	else if (view.search !== "")
		search("");
	else
		back();
	scroller.focus();
}

const COMMANDS = {
	"/": findKey,
	"Escape": escape,
	"Backspace": back,
	"r": reset,
	"i": () => turn("inverted"),
	"l": () => turn("lines"),
	"u": flip,
	"k": () => changeColour(COLOURS[(COLOURS.indexOf(view.colour) + 1) % COLOURS.length]),
	"w": () => view.to && chooseEverything(),
	"t": () => copyTime(),
	"b": () => recorded.compared && ui.side.click(),
	"d": changeTheme,
	"f": () => focusOn(view.focus < 0 ? active : 0),
	"c": () => copy(labelText(active), "name"),
	"C": () => copy(stackOf(active).join("\n"), "stack"),
	"?": toggleHelp,
};

function searchKey(event) {
	if (event.key === "Escape") {
		escape();
	} else if (event.key === "Enter") {
		search(ui.search.value);
		frameKey("n");
	} else {
		return;
	}
	event.preventDefault();
}

function onKey(event) {
	const inSearch = event.target === ui.search;
	const onControl = event.target !== scroller && /^(button|select|summary|textarea)$/.test(event.target.localName);

	if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key === "f" && !inSearch) {
		findKey();
		event.preventDefault();
	} else if (event.ctrlKey || event.metaKey || event.altKey) {
		return;
	} else if (inSearch) {
		searchKey(event);
	} else if (Object.hasOwn(COMMANDS, event.key)) {
		COMMANDS[event.key]();
		event.preventDefault();
	} else if (!onControl && frameKey(event.key)) {
		event.preventDefault();
	}
}

/* -- Mouse and touch -- */

let touched = false;		/* the last press was a touch */

function onMove(event) {
	if (event.pointerType === "touch" || pinned)
		return;
	const i = frameAt(event.clientX, event.clientY);

	picture.style.cursor = i < 0 ? "default" : "pointer";
	if (i < 0)
		closeCard();
	else
		showCard(i, event.clientX, event.clientY);
}

/* A touch cannot hover: the first tap opens the card, the second one zooms. */
function onClick(event) {
	const i = frameAt(event.clientX, event.clientY);
	const again = pinned && i === active;

	if (pinned && i < 0) {
		closeCard();
		return;
	}
	if (i < 0)
		return;
	if (touched && !again)
		openMenu(i, event.clientX, event.clientY);
	else
		zoomTo(remainderAround(i) ? tree.caller[i] : i);
}

function onMenu(event) {
	const byKey = event.target === scroller;
	const i = byKey ? active : frameAt(event.clientX, event.clientY);

	if (i < 0 || !everything())
		return;
	event.preventDefault();
	openMenu(i, ...(byKey ? pointOfActive() : [event.clientX, event.clientY]));
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

function listen() {
	let typing;

	picture.addEventListener("pointermove", onMove);
	picture.addEventListener("pointerleave", () => pinned || closeCard());
	picture.addEventListener("pointerdown", (event) => {
		touched = event.pointerType === "touch";
	});
	picture.addEventListener("click", onClick);
	scroller.addEventListener("contextmenu", onMenu);
	scroller.addEventListener("scroll", redrawSoon);
	ui.search.addEventListener("input", () => {
		clearTimeout(typing);
		typing = setTimeout(() => search(ui.search.value), 120);
	});
	ui.colour.addEventListener("change", () => changeColour(ui.colour.value));
	document.addEventListener("keydown", onKey);
	window.addEventListener("popstate", returnToAddress);
	darkPreferred.addEventListener("change", () => applyTheme(storedTheme()));
	listenToHeat();
	new ResizeObserver(() => {
		refreshHeat();
		place();
		draw();
	}).observe(scroller);
}

function start() {
	root.removeAttribute("viewBox");
	root.setAttribute("width", "100%");
	root.setAttribute("height", "100%");
	root.classList.add("live");
	root.append(svg("foreignObject", { width: "100%", height: "100%" }, ui.app));
	document.getElementById("static").remove();
	readHistory();
	if (!everything() && !view.to)
		scroller.replaceChildren(html("p", { class: "empty" }, IS_TIME ? "No samples" : "No objects"));
	measureFont();
	applyTheme(storedTheme());
	listen();
	refresh(view.zoom);
}

start();
