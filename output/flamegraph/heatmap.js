// SPDX-License-Identifier: MIT
/*
 * The heat map: the times of the samples. Each column is a unit of time, a
 * second for example, with its fractions from the bottom up. The frames show
 * the time range that the user selects. With a search, the map shows only
 * samples with a matching frame.
 */

const ROWS = 50;		/* cells in a column */
const WIDEST = 48;		/* pixels of a column */
const NARROWEST_COLUMN = 2;
const FEW = 5;			/* with fewer seconds, a column is a tenth */
const LEFT = 46, BELOW = 18;	/* pixels for the axes */
const UNITS = [1e5, 1e6, 1e7, 6e7, 6e8, 3.6e9];		/* possible units of a column, in µs */
const HEAT = { light: ["#fde3b8", "#f8b878", "#e8744a", "#c23a50", "#7d1753"],
	       dark: ["#4a2b52", "#8c3a6b", "#d4565a", "#f4a259", "#ffe3a3"] };

const heatCanvas = html("canvas", { class: "cells", tabindex: "0", role: "application" });
const heatScale = html("p", { class: "scale" });
const heatBox = html("div", { class: "heat", hidden: "" }, heatCanvas);

/* The drawn grid: unit is µs per column; first is the number of the first column. */
const grid = { unit: 0, first: 0, columns: 0, width: 0, weights: null, counts: null, most: 0, whole: 0 };
let cellHeight = 3;		/* pixels; less in a low window */
let cursor = -1;		/* the cell that keys act on; cells are numbered in time order */
let dragged = null;		/* [cell, cell] while the user drags; whole columns from the axis */

/* -- Ranges -- */

function seconds(us) {
	return Number((us / 1e6).toFixed(6)) + "s";
}

/* A time of the picture by the clock, in UTC: "2026-11-23T14:02:30.25Z". */
function clockTime(us) {
	const ns = BigInt(root.dataset.begin) + BigInt(us) * 1000n;
	const second = new Date(Number(ns / 1000000000n) * 1000).toISOString().slice(0, 19);
	const fraction = String(ns % 1000000000n).padStart(9, "0").replace(/0+$/, "");

	return second + (fraction ? "." + fraction : "") + "Z";
}

/* The selected time as options of `ljspy report`. With several recordings, seconds would count from the beginning of each. */
function rangeOptions() {
	const time = root.dataset.begin ? clockTime : seconds;

	return (view.from ? "--since " + time(view.from) + " " : "") + "--until " + time(view.to);
}

/* -- The grid -- */

function layOutGrid() {
	cellHeight = innerHeight < 900 ? 2 : 3;
	const room = Math.max(1, heatBox.clientWidth - LEFT - 1);	/* the outline of the last column takes a pixel */
	const columnsOf = (unit) => Math.ceil(moments.until / unit) - Math.floor(moments.since / unit);
	/* The smallest unit that fits. Tenths of a second only if there are few seconds. */
	const unit = UNITS.find((one) => columnsOf(one) * NARROWEST_COLUMN <= room && (one >= 1e6 || columnsOf(1e6) < FEW))
		|| UNITS[UNITS.length - 1];

	if (unit !== grid.unit)
		cursor = -1;
	grid.unit = unit;
	grid.first = Math.floor(moments.since / unit);
	grid.columns = Math.max(1, columnsOf(unit));
	grid.width = Math.max(NARROWEST_COLUMN, Math.min(WIDEST, Math.floor(room / grid.columns)));
}

function cellOf(us) {
	return Math.floor((us - grid.first * grid.unit) / (grid.unit / ROWS));
}

/* The time when a cell begins, in µs. */
function timeOf(cell) {
	return grid.first * grid.unit + Math.round(cell * grid.unit / ROWS);
}

function fillGrid() {
	const cells = grid.columns * ROWS;
	const chosen = chosenThreads();
	const matched = matching && matchedFrames(tree.byLine, matching);

	grid.weights = new Float64Array(cells);
	grid.counts = new Float64Array(cells);
	for (let k = 0; k < moments.count; k++) {
		const cell = cellOf(moments.time[k]);

		if (cell < 0 || cell >= cells || matched && !matched[moments.frame[k]] || chosen[moments.thread[k]] === false)
			continue;
		grid.weights[cell] += moments.weight[k];
		grid.counts[cell]++;
	}
	grid.whole = moments.weight.reduce((sum, weight) => sum + weight, 0);
	/* The scale ends at a percentile, so that a few very heavy cells do not pale all others. */
	const heavy = grid.weights.filter((weight) => weight > 0).sort();

	grid.most = heavy.length ? heavy[Math.floor((heavy.length - 1) * 0.995)] : 0;
}

/* -- Drawing -- */

function heatColours() {
	return HEAT[root.classList.contains("dark") ? "dark" : "light"];
}

function heatColour(weight, colours) {
	return colours[Math.min(colours.length - 1, Math.floor(weight / grid.most * (colours.length - 0.001)))];
}

/* The selected or dragged cells as [first, last + 1]; null for all. */
function chosenCells() {
	if (dragged)
		return [Math.min(...dragged), Math.max(...dragged) + 1];
	return view.to ? [cellOf(view.from), Math.ceil((view.to - grid.first * grid.unit) / (grid.unit / ROWS))] : null;
}

function drawCells(context) {
	const chosen = chosenCells();
	const colours = heatColours();
	const gap = grid.width > 5 ? 1 : 0;

	for (let cell = 0; cell < grid.weights.length; cell++) {
		const weight = grid.weights[cell];

		if (!weight)
			continue;
		context.globalAlpha = chosen && (cell < chosen[0] || cell >= chosen[1]) ? 0.25 : 1;
		context.fillStyle = heatColour(weight, colours);
		context.fillRect(LEFT + Math.floor(cell / ROWS) * grid.width, (ROWS - 1 - cell % ROWS) * cellHeight,
				 grid.width - gap, cellHeight);
	}
	context.globalAlpha = 1;
}

/* Outline the selected cells. The shape has steps, because a range may begin and end inside a column. */
function drawOutline(context, [first, behind], colour) {
	const height = ROWS * cellHeight;
	const [left, right] = [Math.floor(first / ROWS), Math.floor((behind - 1) / ROWS)];
	const x = (column) => LEFT + column * grid.width;
	const top = (cell) => height - (cell % ROWS || ROWS) * cellHeight;		/* of the cell before */
	const bottom = height - first % ROWS * cellHeight;

	context.strokeStyle = colour;
	context.lineWidth = 1.5;
	context.beginPath();
	if (left === right) {
		context.rect(x(left), top(behind), grid.width, bottom - top(behind));
	} else {
		context.moveTo(x(left), bottom);
		context.lineTo(x(left), 0);
		context.lineTo(x(right), 0);
		context.lineTo(x(right), top(behind));
		context.lineTo(x(right + 1), top(behind));
		context.lineTo(x(right + 1), height);
		context.lineTo(x(left + 1), height);
		context.lineTo(x(left + 1), bottom);
		context.closePath();
	}
	context.stroke();
}

/* "12", "1:30", "2:00:05" */
function clock(us) {
	const whole = us / 1e6;
	const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, Number((whole % 60).toFixed(6))];
	const two = (number) => (number < 10 ? "0" : "") + number;

	if (hours)
		return hours + ":" + two(minutes) + ":" + two(rest);
	return minutes ? minutes + ":" + two(rest) : String(rest);
}

function drawAxes(context, style) {
	const height = ROWS * cellHeight;
	const distance = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600].find((step) => step * grid.width >= 64) || 1200;

	context.fillStyle = style.getPropertyValue("--faint");
	context.font = "11px " + style.fontFamily;
	context.textAlign = "right";
	for (const part of [0, 0.25, 0.5, 0.75])
		context.fillText(amount(part * grid.unit * 1000, "time").replace(/^0 .*/, "0"), LEFT - 6, height - part * height - (part ? -4 : 0));
	context.textAlign = "left";
	for (let column = 0; column < grid.columns; column++) {
		const number = grid.first + column;
		const x = LEFT + column * grid.width;

		if (number % distance !== 0 || x + 40 > LEFT + grid.columns * grid.width && column > 0)
			continue;
		context.fillRect(x, height, 1, 4);
		context.fillText(clock(number * grid.unit) + (number ? "" : " s"), x + 3, height + 13);
	}
}

/* Show the scale of the colours. */
function showScale() {
	heatScale.replaceChildren(...heatColours().map((colour) => html("i", { style: "background: " + colour })),
		(matching ? " what matches, up to " : " up to ") + amount(grid.most) + " in each " + amount(grid.unit / ROWS * 1000, "time")
		+ "; drag to choose a time");
}

function drawHeat() {
	if (heatBox.hidden || !grid.weights)
		return;
	const style = getComputedStyle(ui.app);
	const [width, height] = [LEFT + grid.columns * grid.width + 1, ROWS * cellHeight + BELOW];
	const scale = window.devicePixelRatio || 1;
	const context = heatCanvas.getContext("2d");
	const chosen = chosenCells();

	heatCanvas.width = Math.round(width * scale);
	heatCanvas.height = Math.round(height * scale);
	heatCanvas.style.width = width + "px";
	heatCanvas.style.height = height + "px";
	heatCanvas.style.touchAction = width > heatBox.clientWidth ? "pan-x" : "none";	/* to scroll, or to choose */
	context.scale(scale, scale);
	context.fillStyle = style.getPropertyValue("--field");
	context.fillRect(LEFT, 0, grid.columns * grid.width, ROWS * cellHeight);
	drawCells(context);
	drawAxes(context, style);
	if (chosen)
		drawOutline(context, chosen, style.getPropertyValue("--accent"));
	showScale();
	if (cursor >= 0 && document.activeElement === heatCanvas)
		drawOutline(context, [cursor, cursor + 1], style.getPropertyValue("--mark"));
}

/* Call this when the view or the window has changed. */
function refreshHeat() {
	heatBox.hidden = !view.map || !moments || !moments.count;
	if (heatBox.hidden)
		return;
	layOutGrid();
	fillGrid();
	heatCanvas.setAttribute("aria-label", "Heat map of time. Arrows move, with Shift they choose, Enter chooses a cell.");
	Object.assign(heatCanvas.dataset, { unit: grid.unit, first: grid.first, columns: grid.columns, width: grid.width });
	drawHeat();
}

/* -- The card of a cell -- */

function cellContent(cell) {
	const whole = grid.whole;
	const [first, behind] = dragged ? chosenCells() : [cell, cell + 1];
	let weight = 0, count = 0;

	for (let i = first; i < behind; i++) {
		weight += grid.weights[i] || 0;
		count += grid.counts[i] || 0;
	}
	const end = timeOf(behind);

	return [html("b", {}, seconds(timeOf(first)).replace("s", "") + " to " + seconds(end).replace("s", " s")),
		table([[matching ? "matched" : "total", percent(weight, whole) + " of all", amount(weight), samples(count)]])];
}

function showCell(cell, x, y) {
	closeCard();
	ui.card.replaceChildren(...cellContent(cell));
	placeCard(x, y);
}

/* -- Selecting -- */

/* The cell at a point of the window, or -1. On the axis below the cells, the first cell of a column. */
function cellAt(clientX, clientY) {
	const bounds = heatCanvas.getBoundingClientRect();
	const column = Math.floor((clientX - bounds.left - LEFT) / grid.width);
	const row = ROWS - 1 - Math.floor((clientY - bounds.top) / cellHeight);

	if (column < 0 || column >= grid.columns || row >= ROWS)
		return -1;
	return column * ROWS + Math.max(0, row);
}

function isOnAxis(event) {
	return event.clientY - heatCanvas.getBoundingClientRect().top >= ROWS * cellHeight;
}

function chooseCells(first, behind) {
	chooseSamples({ from: timeOf(first), to: timeOf(behind) });
}

function chooseEverything() {
	chooseSamples({ from: 0, to: 0 });
}

let drawnFromAxis = false, anchor = -1;

/* Set the dragged range from the anchor to a cell, in whole columns if it began on the axis. */
function drag(cell) {
	const [low, high] = [Math.min(anchor, cell), Math.max(anchor, cell)];

	dragged = drawnFromAxis ? [low - low % ROWS, high - high % ROWS + ROWS - 1] : [low, high];
}

function onHeatDown(event) {
	const cell = cellAt(event.clientX, event.clientY);

	if (!event.isPrimary) {
		onHeatCancel();
		return;
	}
	if (cell < 0 || event.button !== 0)
		return;
	closeCard();
	if (!event.shiftKey || anchor < 0) {
		anchor = cell;
		drawnFromAxis = isOnAxis(event);
	}
	heatCanvas.setPointerCapture(event.pointerId);
	cursor = cell;
	drag(cell);
	drawHeat();
}

function onHeatMove(event) {
	const cell = cellAt(event.clientX, event.clientY);

	if (dragged && cell >= 0) {
		drag(cell);
		drawHeat();
	}
	if (pinned)
		return;
	if (cell < 0)
		closeCard();
	else
		showCell(cell, event.clientX, event.clientY);
}

function onHeatUp() {
	if (!dragged)
		return;
	const [first, behind] = chosenCells();

	dragged = null;
	chooseCells(first, behind);
}

/* What began as dragging scrolls, or a second finger came. */
function onHeatCancel() {
	dragged = null;
	closeCard();
	drawHeat();
}

function onHeatKey(event) {
	const steps = { ArrowUp: 1, ArrowDown: -1, ArrowRight: ROWS, ArrowLeft: -ROWS };
	const last = grid.columns * ROWS - 1;

	if (event.key === "Enter") {
		chooseCells(Math.max(cursor, 0), Math.max(cursor, 0) + 1);
	} else if (Object.hasOwn(steps, event.key)) {
		const from = cursor;

		cursor = Math.max(0, Math.min(last, cursor < 0 ? cellOf(view.from || moments.since) : cursor + steps[event.key]));
		if (event.shiftKey) {
			anchor = view.to && anchor >= 0 ? anchor : Math.max(from, 0);
			chooseCells(Math.min(anchor, cursor), Math.max(anchor, cursor) + 1);
		} else {
			anchor = cursor;
		}
		const bounds = heatCanvas.getBoundingClientRect();

		drawHeat();
		showCell(cursor, bounds.left + LEFT + Math.floor(cursor / ROWS) * grid.width,
			 bounds.top + (ROWS - cursor % ROWS) * cellHeight);
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
}

function listenToHeat() {
	heatCanvas.addEventListener("pointerdown", onHeatDown);
	heatCanvas.addEventListener("pointermove", onHeatMove);
	heatCanvas.addEventListener("pointerup", onHeatUp);
	heatCanvas.addEventListener("pointercancel", onHeatCancel);
	heatCanvas.addEventListener("pointerleave", () => pinned || dragged || closeCard());
	heatCanvas.addEventListener("keydown", onHeatKey);
	heatCanvas.addEventListener("focus", drawHeat);
	heatCanvas.addEventListener("blur", drawHeat);
}
