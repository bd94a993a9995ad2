// SPDX-License-Identifier: MIT
/*
 * Keys, mouse and touch.
 */

/* -- Moving by keys -- */

function moveTo(i) {
	active = i;
	keepInSight(i);
	draw();
	closeCard();
	showCard(i, ...pointOfActive());
}

/* The widest frame on frame i: a callee, or above the middle of a sandwich a caller. */
function widestCallee(i) {
	const lowest = tree.chains.get(i) ?? i;
	let widest = -1;

	for (let j = lowest + 1; j < tree.end[lowest]; j = tree.end[j]) {
		if (tree.width[j] > 0 && (widest < 0 || tree.width[j] > tree.width[widest]) && !(tree.isSandwich && !i && j < tree.callees))
			widest = j;
	}
	return widest;
}

function widestCaller() {
	let widest = -1;

	for (let j = 1; j < tree.callees; j = tree.end[j]) {
		if (tree.width[j] > 0 && (widest < 0 || tree.width[j] > tree.width[widest]))
			widest = j;
	}
	return widest;
}

/* The frame one level up or down on the screen, or -1. */
function vertical(up) {
	const towardsRoot = tree.caller[active] < 0 ? -1 : shownFor(tree, tree.caller[active]);
	const isAbove = tree.isSandwich && growsToCallers(active);

	if (tree.isSandwich && active === 0)
		return up ? widestCaller() : widestCallee(0);
	return up === (isFlipped() && !isAbove) ? towardsRoot : widestCallee(active);
}

/* The next frame in its row that is wide enough to see, or -1. */
function neighbour(i, step) {
	const row = tree.rows[tree.level[i]];
	const [from, to] = rowRange(tree.level[i]);

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

		if (isMatch(i) && tree.width[i] > 0 && !tree.hidden[i])
			return i;
	}
	return -1;
}

function target(key) {
	switch (key) {
	case "ArrowUp":
		return vertical(true);
	case "ArrowDown":
		return vertical(false);
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
	if (!everything() || view.source)
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
	searchTyped();
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
	"s": () => turnSandwich(),
	"o": () => turnOrder(),
	"m": () => moments && turnPanel("map"),
	"p": () => cpu && turnPanel("cpu"),
	"h": () => turnPanel("list"),
	"v": () => turnSource(),
	"e": () => turnChains(),
	"+": () => tree.isChart && zoomTime(0.5),
	"-": () => tree.isChart && zoomTime(2),
	"l": () => IS_SAMPLED && turn("lines"),
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

let awaited = null;		/* the search whose first match Enter leads to once it is known: the next key or press revokes that */

function goToAwaited() {
	if (isSearching())
		return;
	if (awaited === view.search && ui.search.value === awaited && document.activeElement === ui.search && matching?.includes(true))
		frameKey("n");
	awaited = null;
}

function searchKey(event) {
	if (event.key === "Escape") {
		escape();
	} else if (event.key === "Enter") {
		searchNow();
		awaited = view.search;
		goToAwaited();
	} else {
		return;
	}
	event.preventDefault();
}

/* A menu chooses by the letters that are typed on it. */
function isTyped(event) {
	return event.target.localName === "select" && event.key.length === 1;
}

function onKey(event) {
	const inSearch = event.target === ui.search;
	const onControl = event.target !== scroller && /^(button|select|summary|textarea)$/.test(event.target.localName);

	awaited = null;
	if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key === "f" && !inSearch) {
		findKey();
		event.preventDefault();
	} else if (event.ctrlKey || event.metaKey || event.altKey || isTyped(event)) {
		return;
	} else if (inSearch) {
		searchKey(event);
	} else if (tree.isChart && event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
		moveTime(event.key === "ArrowLeft" ? -0.25 : 0.25);
		event.preventDefault();
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

	if (i < 0 || !everything() || view.source)
		return;
	event.preventDefault();
	openMenu(i, ...(byKey ? pointOfActive() : [event.clientX, event.clientY]));
}
