// SPDX-License-Identifier: MIT
/*
 * The minimap: the whole picture in little, with what is shown outlined. In a
 * chart of time, dragging on it selects a time, and a ruler names the times.
 * Everywhere else a click zooms to the frame there.
 */

const MINIMAP_HEIGHT = 30, MINIMAP_ROW = 2;	/* pixels */
const RULER_HEIGHT = 16;
const LABEL_DISTANCE = 80;	/* at least so many pixels between two times */
const SHORTEST_US = 100;	/* that a chart can be zoomed to */

const minimap = html("canvas", { class: "minimap", "aria-hidden": "true" });
const ruler = html("canvas", { class: "ruler", "aria-hidden": "true" });

function isMinimapShown() {
	return everything() > 0 && (tree.isChart || view.zoom > 0);
}

/* A canvas of the frames' width, ready to draw in pixels of the page. */
function contextOf(canvas, height) {
	const scale = window.devicePixelRatio || 1;
	const context = canvas.getContext("2d");

	canvas.width = Math.round(layout.width * scale);
	canvas.height = Math.round(height * scale);
	canvas.style.width = layout.width + "px";
	canvas.style.height = height + "px";
	context.scale(scale, scale);
	return context;
}

/* Call this after place(). */
function drawMinimap() {
	minimap.hidden = !isMinimapShown();
	ruler.hidden = !tree.isChart || !everything();
	if (!ruler.hidden)
		drawRuler(contextOf(ruler, RULER_HEIGHT));
	if (minimap.hidden)
		return;
	const style = getComputedStyle(ui.app);
	const context = contextOf(minimap, MINIMAP_HEIGHT);
	const scale = layout.width / everything();
	const x = (layout.begin - tree.start[0]) * scale, width = layout.extent * scale;

	context.fillStyle = style.getPropertyValue("--field");
	context.fillRect(0, 0, layout.width, MINIMAP_HEIGHT);
	context.fillStyle = style.getPropertyValue("--faint");
	context.globalAlpha = 0.55;
	for (let level = 0; level * MINIMAP_ROW < MINIMAP_HEIGHT && level < tree.rows.length; level++)
		drawMinimapRow(context, level, scale);
	context.globalAlpha = 1;
	context.strokeStyle = style.getPropertyValue("--accent");
	context.lineWidth = 2;
	context.strokeRect(Math.max(1, x), 1, Math.max(2, Math.min(width, layout.width - x - 1)), MINIMAP_HEIGHT - 2);
}

function drawMinimapRow(context, level, scale) {
	const y = isFlipped() ? level * MINIMAP_ROW : MINIMAP_HEIGHT - (level + 1) * MINIMAP_ROW;
	let painted = 0;	/* up to here, so that frames too narrow to see take no time */

	for (const i of tree.rows[level] || []) {
		const left = (tree.start[i] - tree.start[0]) * scale;
		const right = left + tree.width[i] * scale;

		if (right - painted < 0.5)
			continue;
		context.fillRect(Math.max(left, painted), y, Math.max(0.5, right - Math.max(left, painted) - 0.3), MINIMAP_ROW - 0.5);
		painted = right;
	}
}

/* The step between times of a ruler, in µs: 1, 2 or 5 of a power of ten. */
function rulerStep(extentUs, width) {
	const least = extentUs * LABEL_DISTANCE / width;
	const power = 10 ** Math.floor(Math.log10(least));

	return [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least);
}

function drawRuler(context) {
	const style = getComputedStyle(ui.app);
	const [from, to] = shownTime().map((ns) => ns / 1000);
	const step = rulerStep(to - from, layout.width);

	context.fillStyle = style.getPropertyValue("--faint");
	context.font = "11px " + style.fontFamily;
	for (let number = Math.ceil(from / step); number * step < to; number++) {
		const x = (number * step - from) / (to - from) * layout.width;

		context.fillRect(x, 0, 1, RULER_HEIGHT);
		if (x + LABEL_DISTANCE / 2 < layout.width)
			context.fillText(clock(number * step) + (number * step < 6e7 ? " s" : ""), x + 3, 11);
	}
}

/* -- Zooming in time -- */

/* Show a time in µs, within the recording and not shorter than can be seen. */
function showTime(from, to) {
	const whole = [tree.start[0], tree.start[0] + tree.width[0]].map((ns) => Math.round(ns / 1000));
	const extent = Math.min(Math.max(Math.round(to - from), SHORTEST_US), whole[1] - whole[0]);
	const begin = Math.round(Math.max(whole[0], Math.min(from, whole[1] - extent)));

	turnTo(extent === whole[1] - whole[0] ? { from: 0, to: 0 } : { from: begin, to: begin + extent });
	refresh();
}

/* Zoom by a factor around a part (0 to 1) of the shown time. */
function zoomTime(factor, around = 0.5) {
	const [from, to] = shownTime().map((ns) => ns / 1000);
	const middle = from + (to - from) * around;

	showTime(middle - (middle - from) * factor, middle + (to - middle) * factor);
}

/* Move by a part of the shown time. */
function moveTime(part) {
	const [from, to] = shownTime().map((ns) => ns / 1000);

	showTime(from + (to - from) * part, to + (to - from) * part);
}

/* The frame at a point of the minimap, or the outermost one left of and below it. */
function frameOfMinimap(x, y) {
	const level = Math.floor((isFlipped() ? y : MINIMAP_HEIGHT - y) / MINIMAP_ROW);
	const at = tree.start[0] + x / layout.width * everything();
	let found = 0;

	for (let above = 1; above <= level; above++) {
		const row = tree.rows[above] || [];
		const i = row[firstIndex(row, (frame) => tree.start[frame] > at) - 1];

		if (i !== undefined && isAncestor(found, i) && tree.start[i] + tree.width[i] > at)
			found = i;
	}
	return found;
}

let minimapFrom = -1;		/* where dragging began, in pixels; -1 if the user does not drag */

function onMinimapDown(event) {
	minimapFrom = event.isPrimary ? event.offsetX : -1;	/* of two fingers, neither chooses */
	minimap.setPointerCapture(event.pointerId);
}

function onMinimapUp(event) {
	const ends = [minimapFrom, event.offsetX].sort((a, b) => a - b);
	const time = (x) => (tree.start[0] + x / layout.width * everything()) / 1000;

	if (minimapFrom < 0)
		return;
	minimapFrom = -1;
	if (!tree.isChart)
		zoomTo(frameOfMinimap(event.offsetX, event.offsetY));
	else if (ends[1] - ends[0] >= 2)
		showTime(time(ends[0]), time(ends[1]));
	else
		moveTime((time(ends[0]) * 1000 - layout.begin) / layout.extent - 0.5);
}

/* In a chart, the wheel with Ctrl (or two fingers) zooms, and moves sideways. */
function onWheel(event) {
	if (!tree.isChart || !everything() || !event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY))
		return;
	event.preventDefault();
	const bounds = picture.getBoundingClientRect();

	if (event.ctrlKey)
		zoomTime(1.002 ** event.deltaY, Math.max(0, Math.min(1, (event.clientX - bounds.left) / layout.width)));
	else
		moveTime((event.deltaX || event.deltaY) / layout.width);
}

function listenToMinimap() {
	minimap.addEventListener("pointerdown", onMinimapDown);
	minimap.addEventListener("pointerup", onMinimapUp);
	minimap.addEventListener("pointercancel", () => { minimapFrom = -1; });
	scroller.addEventListener("wheel", onWheel, { passive: false });
}
