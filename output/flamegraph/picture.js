// SPDX-License-Identifier: MIT
/*
 * Draw the view, but only the visible rows. A frame wide enough for text is an
 * element; all narrower ones of a class are one path, so that the number of
 * elements does not depend on the number of frames. frameAt() computes which
 * frame is at a point. Names are always set as text, never as markup.
 */

const SVG = "http://www.w3.org/2000/svg";
const HTML = "http://www.w3.org/1999/xhtml";
const ROW = 18;			/* pixels from one row to the next */
const NARROWEST = 0.5;		/* narrower frames are drawn together, as a remainder */
const WITH_TEXT = 20;		/* frames from this width on are elements */
const INDENT = 3;		/* of a frame's text */
const ANCESTORS_IN_SIGHT = 8;	/* visible callers of a frame after zooming to it */

function element(namespace, name, attributes, ...children) {
	const made = document.createElementNS(namespace, name);

	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children);
	return made;
}

const html = (name, attributes, ...children) => element(HTML, name, attributes, ...children);
const svg = (name, attributes, ...children) => element(SVG, name, attributes, ...children);

const picture = svg("svg", { class: "frames", role: "presentation" });
const scroller = html("div", { class: "scroll", tabindex: "0", role: "tree", "aria-label": "Flame graph" }, picture);

/* Sizes in pixels, the lowest level, and what of the tree's width is shown; set by place(). */
const layout = { width: 0, height: 0, deepest: 0, begin: 0, extent: 1 };

/* -- Text -- */

const measure = document.createElementNS(HTML, "canvas").getContext("2d");
let charWidth = 7.3;

function measureFont() {
	const style = getComputedStyle(picture);

	measure.font = style.fontSize + " " + style.fontFamily;
	charWidth = measure.measureText("m".repeat(64)).width / 64;
}

/* The part of a label that fits into a width in pixels. */
function fitted(label, width) {
	const room = width - 2 * INDENT;
	const columns = Math.floor(room / charWidth);

	if (columns < 2)
		return "";
	if (/^[ -~]*$/.test(label.text))
		return shortLabel(label, (text) => text.length <= columns);
	return shortLabel(label, (text) => text.length <= 4 * columns && measure.measureText(text).width <= room);
}

/* The label of a frame; with "≈" if lines are shown and most of its weight is at a nearest known line. */
function shownLabel(i) {
	const label = labelOf(i);

	if (tree.chains.has(i))
		return { text: shownText(i), name: shownText(i), place: "" };
	return tree.byLine && tree.nearest[i] > tree.width[i] / 2 ? { ...label, name: "≈ " + label.name } : label;
}

/* -- Where frames are -- */

/* Left edge and width of frame i in pixels. Callers of the zoomed frame fill the row; a chart is cut at its edges. */
function span(i) {
	const scale = layout.width / layout.extent;
	const left = (tree.start[i] - layout.begin) * scale, width = tree.width[i] * scale;

	if (tree.isChart) {
		const shown = Math.max(0, left);

		return [shown, Math.min(layout.width, left + width) - shown];
	}
	return isAncestor(i, view.zoom) ? [0, layout.width] : [left, width];
}

/* Is the root at the top? */
function isFlipped() {
	return view.flipped || tree.isSandwich;
}

function rowTop(level) {
	return isFlipped() ? level * ROW : layout.height - (level + 1) * ROW;
}

/* The lowest visible level when zoomed to frame i: at most that of the callees of a frame that is wide enough. */
function deepestRow(i) {
	const narrowest = tree.width[i] * NARROWEST / layout.width;
	let deepest = tree.level[i];

	for (let j = i + 1; j < tree.end[i]; j++) {
		if (tree.level[j] > deepest && tree.width[j] > 0 && tree.width[tree.caller[j]] >= narrowest)
			deepest = tree.level[j];
	}
	return deepest;
}

/* The shown part of a chart, in ns after the beginning. */
function shownTime() {
	return view.to ? [view.from * 1000, view.to * 1000] : [tree.start[0], tree.start[0] + tree.width[0]];
}

function place() {
	const style = getComputedStyle(scroller);

	layout.width = Math.max(1, scroller.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
	layout.deepest = tree.isChart ? tree.rows.length - 1 : deepestRow(view.zoom);
	[layout.begin, layout.extent] = [tree.start[view.zoom], tree.width[view.zoom]];
	if (tree.isChart) {
		const [from, to] = shownTime();

		[layout.begin, layout.extent] = [from, to - from];
	}
	/* Do not shrink on zoom, so that the root keeps its place. */
	layout.height = Math.max((layout.deepest + 1) * ROW + 2,
		Math.min((tree.isChart ? tree.rows.length : deepestRow(0) + 1) * ROW + 2, scroller.clientHeight));
	picture.setAttribute("height", layout.height);
}

/* The first index in a row from which on test() is true. */
function firstIndex(row, test) {
	let low = 0, high = row.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (test(row[middle]))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The frames of a level that belong to the view, as a range [from, to) of indexes into rows[level]. */
function rowRange(level) {
	const row = tree.rows[level] || [];
	let i = view.zoom;

	if (tree.isChart) {
		const end = layout.begin + layout.extent;

		return [firstIndex(row, (frame) => tree.start[frame] + tree.width[frame] > layout.begin),
			firstIndex(row, (frame) => tree.start[frame] >= end)];
	}
	if (i === 0)
		return [0, row.length];
	if (level < tree.level[i]) {
		while (tree.level[i] > level)
			i = tree.caller[i];
		i = shownFor(tree, i);
		const index = firstIndex(row, (frame) => frame >= i);
		return [index, index + 1];
	}
	return [firstIndex(row, (frame) => frame >= i), firstIndex(row, (frame) => frame >= tree.end[i])];
}

/* The frame at a point of the window, or -1. */
function frameAt(clientX, clientY) {
	const bounds = picture.getBoundingClientRect();
	const x = clientX - bounds.left, y = clientY - bounds.top;
	const level = Math.floor((isFlipped() ? y : layout.height - y) / ROW);
	const row = tree.rows[level];

	if (!row || level > layout.deepest || x < 0 || x > layout.width || !everything())
		return -1;
	const [from, to] = rowRange(level);
	const i = row[Math.max(from, Math.min(to, firstIndex(row, (frame) => frame >= row[from] && span(frame)[0] > x)) - 1)];
	if (i === undefined || from === to)
		return -1;
	const [left, width] = span(i);
	return x >= left - 1 && x <= left + width + 1 ? i : -1;
}

/* The run of siblings around i that are too narrow to see, as [number of frames, left, right]; null if none. */
function remainderAround(i) {
	const row = tree.rows[tree.level[i]];
	const [from, to] = rowRange(tree.level[i]);
	const belongs = (index) => index >= from && index < to &&
		tree.caller[row[index]] === tree.caller[i] && span(row[index])[1] < NARROWEST;
	let first = firstIndex(row, (frame) => frame >= i), last = first;

	if (!belongs(first))
		return null;
	while (belongs(first - 1))
		first--;
	while (belongs(last + 1))
		last++;
	if (first === last)
		return null;
	const [x, width] = span(row[last]);
	return [last - first + 1, span(row[first])[0], x + width];
}

/* -- Drawing -- */

function classesOf(i) {
	const classes = ["f", look(i)];

	if (i < view.zoom && isAncestor(i, view.zoom))
		classes.push("above");
	if (tree.chains.has(i))
		classes.push("chain");
	if (isMatch(i))
		classes.push("hit");
	return classes.join(" ");
}

/* Draw the shares of the VM's states in a frame as a strip, unless one state has nearly all. */
function drawStates(group, i, x, y, width) {
	const states = stateLooks(i);
	const whole = states.reduce((sum, [, weight]) => sum + weight, 0);
	let left = x;

	if (states.length < 2 || states[1][1] / whole * width < 2)
		return;
	for (const [name, weight] of states) {
		const part = weight / whole * width;

		group.append(svg("rect", { class: "part " + name, x: left, y: y + ROW - 4, width: part, height: 3 }));
		left += part;
	}
}

function drawFrame(into, i, x, width) {
	const y = rowTop(tree.level[i]);
	const shown = width > 4 ? width - 1 : Math.max(width, 1);
	const label = fitted(shownLabel(i), shown);
	const group = svg("g", {
		"data-frame": i, role: "treeitem", id: "frame" + i, "aria-level": tree.depth[i] + 1,
		"aria-label": shownText(i) + ", " + percent(tree.width[i], everything()), class: classesOf(i),
	}, svg("rect", { x, y, width: shown, height: ROW - 1, rx: shown > 8 ? 2 : 0 }));

	if (view.colour === "state")
		drawStates(group, i, x, y, shown);
	if (label)
		group.append(svg("text", { x: x + INDENT, y: y + (view.colour === "state" ? 11 : 12.5) }, label));
	into.append(group);
}

/* Draw neighbours that are too narrow as one shape. */
function drawRemainder(into, paths, remainder, y) {
	const { x, width, count, hit } = remainder;
	const classes = hit ? "f r hit" : "f r";
	const text = grouped.format(count) + " narrow frames";
	const label = fitted({ text, name: text, place: "" }, width);

	if (width < NARROWEST)
		return;
	if (!label) {
		addToPath(paths, classes, x, y, width);
		return;
	}
	into.append(svg("g", { "data-count": count, class: classes },
		svg("rect", { x, y, width, height: ROW - 1 }), svg("text", { x: x + INDENT, y: y + 12.5 }, label)));
}

function addToPath(paths, classes, x, y, width) {
	const shape = `M${x.toFixed(2)},${y}h${width.toFixed(2)}v${ROW - 1}h${(-width).toFixed(2)}z`;

	paths.set(classes, (paths.get(classes) || "") + shape);
}

function drawRow(into, paths, level) {
	const [from, to] = rowRange(level);
	const y = rowTop(level);
	let remainder = null;
	const flush = () => {
		if (remainder)
			drawRemainder(into, paths, remainder, y);
		remainder = null;
	};

	for (let index = from; index < to; index++) {
		const i = tree.rows[level][index];
		const [x, width] = span(i);

		if (width >= NARROWEST) {
			flush();
			if (width >= WITH_TEXT)
				drawFrame(into, i, x, width);
			else
				addToPath(paths, classesOf(i), x, y, width > 3 ? width - 1 : width);
			continue;
		}
		if (remainder && (remainder.caller !== tree.caller[i] || x > remainder.x + remainder.width + NARROWEST))
			flush();
		remainder ||= { x, width: 0, count: 0, caller: tree.caller[i], hit: false };
		remainder.width = x + width - remainder.x;
		remainder.count++;
		remainder.hit ||= isMatch(i);
	}
	flush();
}

/* Draw a ring around the active frame, which is an element at any width. */
function drawActive(into) {
	const [x, width] = span(active);

	if (width <= 0) {	/* outside the shown time */
		scroller.removeAttribute("aria-activedescendant");
		return;
	}
	if (!into.querySelector("#frame" + active))
		drawFrame(into, active, x, width);
	into.append(svg("rect", { class: "ring", x, y: rowTop(tree.level[active]), width: Math.max(width, 3), height: ROW - 1, rx: 2 }));
	scroller.setAttribute("aria-activedescendant", "frame" + active);
}

const hovered = svg("rect", { class: "hovered", height: ROW - 1, rx: 2 });

/* Mark what is under the pointer: frame i, the run of narrow ones around it, or nothing (-1). */
function markHovered(i) {
	if (i < 0) {
		hovered.remove();
		return;
	}
	const [, left, right] = remainderAround(i) || [0, span(i)[0], span(i)[0] + span(i)[1]];

	hovered.setAttribute("x", left);
	hovered.setAttribute("y", rowTop(tree.level[i]));
	hovered.setAttribute("width", Math.max(right - left - (right - left > 4 ? 1 : 0), 1));
	picture.append(hovered);
}

/* Why the view has nothing to draw. */
function emptyText() {
	return view.to ? "No samples in this time" : IS_SAMPLED ? "No such samples" : "No such objects";
}

/* Draw the visible rows. */
function draw() {
	const drawn = document.createDocumentFragment();
	const paths = new Map();
	const scrolled = onPaper?.shifted ?? scroller.scrollTop;
	const top = Math.floor(scrolled / ROW) - 2;
	const bottom = Math.ceil((scrolled + scroller.clientHeight) / ROW) + 2;
	const rows = Math.floor(layout.height / ROW);
	const [from, to] = isFlipped() ? [top, bottom] : [rows - bottom - 1, rows - top + 1];

	scroller.setAttribute("role", everything() ? "tree" : "region");
	if (!everything()) {
		scroller.removeAttribute("aria-activedescendant");
		picture.replaceChildren(svg("text", { class: "detail", x: INDENT, y: layout.height - 6 }, emptyText()));
		return;
	}
	for (let level = Math.max(0, from); level <= Math.min(layout.deepest, to); level++)
		drawRow(drawn, paths, level);
	for (const [classes, shape] of paths)
		drawn.append(svg("path", { class: classes, d: shape }));
	drawActive(drawn);
	picture.replaceChildren(drawn);
}

/* -- Scrolling -- */

/* Scroll to a frame's row, with some of its callers in sight. */
function scrollTo(i) {
	const near = Math.max(0, tree.level[i] - ANCESTORS_IN_SIGHT);

	if (tree.isSandwich)
		scroller.scrollTop = rowTop(tree.level[i]) - (scroller.clientHeight - ROW) / 2;
	else
		scroller.scrollTop = view.flipped ? near * ROW : layout.height - near * ROW - scroller.clientHeight;
}

function keepInSight(i) {
	const top = rowTop(tree.level[i]);

	if (top < scroller.scrollTop)
		scroller.scrollTop = top - ROW;
	else if (top + 2 * ROW > scroller.scrollTop + scroller.clientHeight)
		scroller.scrollTop = top + 2 * ROW - scroller.clientHeight;
}
