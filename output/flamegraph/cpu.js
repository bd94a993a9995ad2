// SPDX-License-Identifier: MIT
/*
 * The CPU use over time, in a strip above the frames: of one process, areas by
 * state of the VM, one on the other; of several, a line each. What "cpu" in the
 * file holds: output/over_time/cpu_use.h. The user selects a time in it, as in
 * the heat map.
 */

const STRIP = { high: 38, low: 26 };	/* pixels of the plot; low in a low window */
const STRIP_LEFT = 46, STRIP_BELOW = 14;	/* for the axes */
const STRIP_LINES = 8;			/* classes of lines */
const STRIP_ORDER = ["g", "l", "j", "c", "k", "e", "n", "u"];	/* looks, from the bottom up */

function loadCpu() {
	const [head, ...lines] = metadata("cpu");

	if (!head)
		return null;
	const [step, steps, sampled, since, until] = head.split(" ").map(Number);
	const processes = [];

	for (const line of lines) {
		const space = line.indexOf(" ");

		if (/^\d/.test(line)) {
			processes.push({ pid: line.slice(0, space), name: line.slice(space + 1), looks: new Map(), all: new Float64Array(steps) });
			continue;
		}
		const { looks, all } = processes[processes.length - 1];
		const look = STATE_LOOKS[line[0]];

		if (!looks.has(look))
			looks.set(look, new Float64Array(steps));
		line.slice(space + 1).split(" ").forEach((value, k) => {
			looks.get(look)[k] += Number(value) / 1000;
			all[k] += Number(value) / 1000;
		});
	}
	return { step, steps, sampled: sampled / 1000, since, until, processes };
}

const cpu = loadCpu();
const stripPicture = svg("svg", { class: "cpu", tabindex: "0", role: moments ? "application" : "img" });
const stripBox = html("div", { class: "strip", hidden: "" }, stripPicture);
const strip = { width: 0, height: 0, from: -1, to: -1, cursor: -1 };	/* from, to: steps while the user drags */

/* -- Steps -- */

/* The time when a step begins, in µs; the last one ends with the recording, or with the part of it that is in the file. */
function stepTime(k) {
	return Math.min(cpu.since + k * cpu.step, cpu.until);
}

/* The number of the step at a time, with a fraction. */
function stepOf(us) {
	return Math.max(0, Math.min(cpu.steps, (us - cpu.since) / cpu.step));
}

/* -- Sums -- */

/* The chosen process, or all. None if it is one of the others, of which only the sum is known. */
function shownProcesses() {
	return cpu.processes.filter((one) => !view.process || one.pid === view.process);
}

/* Say why there is no strip though the user asks for one. */
function whyNoStrip() {
	return cpu && view.cpu && !shownProcesses().length ? "CPU use of this process is known only in the sum of others" : "";
}

/* The mean of a list over steps; the last step may be shorter. */
function meanOf(list, from, to) {
	let sum = 0;

	for (let k = from; k < to; k++)
		sum += list[k] * (stepTime(k + 1) - stepTime(k));
	return sum / (stepTime(to) - stepTime(from));
}

/* The mean use in steps, and the part of it that garbage collection has. */
function meanUse(from, to) {
	let all = 0, gc = 0;

	for (const { all: used, looks } of shownProcesses()) {
		all += meanOf(used, from, to);
		gc += looks.has("g") ? meanOf(looks.get("g"), from, to) : 0;
	}
	return [all, all ? gc / all : 0];
}

function cores(value) {
	return (100 * value).toFixed(value < 0.1 ? 1 : 0) + " %";
}

function chosenSteps() {
	if (strip.from >= 0)
		return [Math.min(strip.from, strip.to), Math.max(strip.from, strip.to) + 1];
	if (!view.to)
		return null;
	const from = Math.min(Math.floor(stepOf(view.from)), cpu.steps - 1);

	return [from, Math.max(Math.ceil(stepOf(view.to)), from + 1)];
}

/* How much was sampled is known only of all processes in the whole time. */
function useInWords() {
	const chosen = chosenSteps();
	const [used, gc] = meanUse(...chosen || [0, cpu.steps]);

	return "CPU " + cores(used) + " of a core, GC " + (100 * gc).toFixed(1) + " % of it, " +
		(chosen || view.process ? "overall " : "") + (100 * cpu.sampled).toFixed(0) + " % sampled";
}

/* -- Drawing -- */

/* The most of one value, as a round number. */
function topOfUse(lists) {
	const most = Math.max(0.01, ...lists.map((list) => list.reduce((a, b) => Math.max(a, b), 0)));
	const power = 10 ** Math.floor(Math.log10(most));

	return [1, 1.5, 2, 3, 5, 7.5, 10].map((part) => part * power).find((top) => top >= most * 0.98);
}

function timeX(us) {
	return STRIP_LEFT + (us - cpu.since) / (cpu.until - cpu.since) * (strip.width - STRIP_LEFT);
}

function stepX(k) {
	return timeX(stepTime(k));
}

/* The level edge of a list, from step to step. */
function edgeOf(list, top) {
	return Array.from(list, (value, k) => {
		const y = (strip.height * (1 - Math.min(1, value / top))).toFixed(1);

		return stepX(k).toFixed(1) + "," + y + "L" + stepX(k + 1).toFixed(1) + "," + y;
	});
}

function drawAreas({ looks, all }) {
	const top = topOfUse([all]);
	let below = new Float64Array(cpu.steps);

	for (const look of STRIP_ORDER.filter((one) => looks.has(one))) {
		const above = below.map((value, k) => value + looks.get(look)[k]);
		const back = edgeOf(below, top).map((part) => part.split("L").reverse().join("L")).reverse();

		stripPicture.append(svg("path", { class: "f " + look, d: "M" + edgeOf(above, top).join("L") + "L" + back.join("L") + "z" }));
		below = above;
	}
	return top;
}

function drawLines(processes) {
	const top = topOfUse(processes.map(({ all }) => all));

	processes.forEach(({ all }, i) => {
		stripPicture.append(svg("path", { class: "w w" + i % STRIP_LINES, d: "M" + edgeOf(all, top).join("L") }));
	});
	return top;
}

function drawStripAxes(top) {
	const words = useInWords() + (moments && strip.width > 640 ? "; drag to choose a time" : "");
	const room = strip.width - STRIP_LEFT - words.length * 6.2;
	const step = rulerStep(cpu.until - cpu.since, strip.width);
	const text = (x, y, content, anchor) => stripPicture.append(svg("text", { x, y, class: "detail", "text-anchor": anchor }, content));

	text(STRIP_LEFT - 6, 9, cores(top), "end");
	text(STRIP_LEFT - 6, strip.height, "0", "end");
	text(strip.width, strip.height + 11, words, "end");
	for (let number = Math.ceil(cpu.since / step); number * step < cpu.until; number++) {
		const x = timeX(number * step);

		if (x - STRIP_LEFT + 36 > room)
			break;
		stripPicture.append(svg("rect", { class: "tick", x, y: strip.height, width: 1, height: 4 }));
		text(x + 3, strip.height + 11, clock(number * step) + (number * step < 6e7 ? " s" : ""), "start");
	}
}

function drawStrip() {
	if (stripBox.hidden)
		return;
	const processes = shownProcesses();
	const chosen = chosenSteps();
	const bar = (name, from, to) => stripPicture.append(svg("rect", { class: name, x: stepX(from), y: 0,
		width: Math.max(1, stepX(to) - stepX(from)), height: strip.height }));

	stripPicture.replaceChildren();
	bar("field", 0, cpu.steps);
	const top = processes.length > 1 ? drawLines(processes) : drawAreas(processes[0]);

	if (chosen) {
		bar("outside", 0, chosen[0]);
		bar("outside", chosen[1], cpu.steps);
		bar("chosen", ...chosen);
	}
	if (strip.cursor >= 0 && document.activeElement === stripPicture)
		bar("cursor", strip.cursor, strip.cursor + 1);
	drawStripAxes(top);
	stripPicture.setAttribute("aria-label", useInWords() + (moments ? ". Arrows move, with Shift they choose, Enter chooses a step." : ""));
}

/* Call this when the view or the window has changed. A low window has no room for the heat map and this. */
function refreshStrip() {
	const isLow = innerHeight < 900;

	stripBox.hidden = !cpu || !view.cpu || !shownProcesses().length || isLow && !heatBox.hidden;
	if (stripBox.hidden)
		return;
	strip.width = Math.max(STRIP_LEFT + 40, stripBox.clientWidth);
	strip.height = isLow ? STRIP.low : STRIP.high;
	stripPicture.setAttribute("width", strip.width);
	stripPicture.setAttribute("height", strip.height + STRIP_BELOW);
	drawStrip();
}

/* -- The card of a step -- */

function stepContent(k) {
	const [from, to] = strip.from >= 0 ? chosenSteps() : [k, k + 1];
	const mean = (list) => meanOf(list, from, to);
	const processes = shownProcesses();
	const rows = processes.length > 1
		? processes.map((one) => [one.name + (one.pid === "0" ? "" : " (pid " + one.pid + ")"), mean(one.all)])
		: [...processes[0].looks].map(([look, list]) => [STATE_LEGEND[look], mean(list)]);
	const shown = rows.filter(([, used]) => used >= 0.0005).sort(([, a], [, b]) => b - a);

	return [html("b", {}, seconds(stepTime(from)).replace("s", "") + " to " + seconds(stepTime(to)).replace("s", " s")),
		table([["CPU use", cores(meanUse(from, to)[0]) + " of a core"], ...shown.slice(0, 8).map(([name, used]) => [name, cores(used)])])];
}

function showStep(k, x, y) {
	closeCard();
	ui.card.replaceChildren(...stepContent(k));
	placeCard(x, y);
}

/* -- Selecting -- */

function stepAt(event) {
	const x = event.clientX - stripPicture.getBoundingClientRect().left - STRIP_LEFT;

	return Math.min(cpu.steps - 1, Math.floor(stepOf(cpu.since + x / (strip.width - STRIP_LEFT) * (cpu.until - cpu.since))));
}

function chooseSteps(from, to) {
	/* A sample at the very end is one of the last step. */
	chooseSamples({ from: stepTime(from), to: to < cpu.steps ? stepTime(to) : moments.until });
}

function onStripDown(event) {
	if (!event.isPrimary) {
		onStripCancel();
		return;
	}
	if (!moments || event.button !== 0)
		return;
	closeCard();
	stripPicture.setPointerCapture(event.pointerId);
	strip.from = strip.to = strip.cursor = stepAt(event);
	drawStrip();
}

function onStripMove(event) {
	if (strip.from >= 0) {
		strip.to = stepAt(event);
		drawStrip();
	}
	if (!pinned)
		showStep(stepAt(event), event.clientX, event.clientY);
}

function onStripUp() {
	if (strip.from < 0)
		return;
	const chosen = chosenSteps();

	strip.from = -1;
	chooseSteps(...chosen);
}

/* What began as dragging scrolls, or a second finger came. */
function onStripCancel() {
	strip.from = -1;
	closeCard();
	drawStrip();
}

function onStripKey(event) {
	const steps = { ArrowRight: 1, ArrowLeft: -1 };

	if (!moments)
		return;
	if (event.key === "Enter") {
		chooseSteps(Math.max(strip.cursor, 0), Math.max(strip.cursor, 0) + 1);
	} else if (Object.hasOwn(steps, event.key)) {
		const before = Math.max(strip.cursor, 0);

		strip.cursor = strip.cursor < 0 ? 0 : Math.max(0, Math.min(cpu.steps - 1, strip.cursor + steps[event.key]));
		if (event.shiftKey) {
			const [from, to] = chosenSteps() || [before, before + 1];
			/* The end that the cursor was at moves. */
			const fixed = before === from && to - from > 1 ? to - 1 : from;

			chooseSteps(Math.min(fixed, strip.cursor), Math.max(fixed, strip.cursor) + 1);
		}
		const bounds = stripPicture.getBoundingClientRect();

		drawStrip();
		showStep(strip.cursor, bounds.left + stepX(strip.cursor), bounds.bottom);
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
}

function listenToStrip() {
	stripPicture.addEventListener("pointerdown", onStripDown);
	stripPicture.addEventListener("pointermove", onStripMove);
	stripPicture.addEventListener("pointerup", onStripUp);
	stripPicture.addEventListener("pointercancel", onStripCancel);
	stripPicture.addEventListener("pointerleave", () => pinned || strip.from >= 0 || closeCard());
	stripPicture.addEventListener("keydown", onStripKey);
	stripPicture.addEventListener("focus", drawStrip);
	stripPicture.addEventListener("blur", drawStrip);
}
