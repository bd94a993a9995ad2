// SPDX-License-Identifier: MIT
/*
 * The card of a frame: its figures on hover, and with a right click or a tap
 * what can be done with it. And copying.
 */

/* The four heaviest of pairs of a name and a weight, with their shares. */
function heaviest(pairs, whole) {
	const sorted = pairs.filter(([, weight]) => weight / whole >= 0.0005).sort(([, a], [, b]) => b - a);
	const told = sorted.slice(0, 4).map(([name, weight]) => name + " " + percent(weight, whole));

	return told.join(", ") + (sorted.length > 4 ? ", …" : "");
}

/* The weight of a frame by line of its function. Empty where nodes are no single frames. */
function linesOf(i) {
	const weights = new Map();

	for (let j = 0; tree.of && j < recorded.count; j++) {
		if (tree.of[j] !== i || recorded.side[j] !== view.side)
			continue;
		const line = recorded.lines[recorded.line[j]].text.match(/:(\d+|\?)$/);

		if (line)
			weights.set(line[1] + ":", (weights.get(line[1] + ":") || 0) + recorded.total[j]);
	}
	return [...weights];
}

/* What a frame's share is a share of: all, or in a chart the whole time. */
function ofAll() {
	return tree.isChart ? " of the time" : " of all";
}

function weightRows(i) {
	const side = view.side;
	const rows = [["total", percent(tree.width[i], everything()) + ofAll(), amount(tree.width[i]),
		       samples(tree.samples[side][i])]];
	const own = tree.own[i];

	if (view.zoom)
		rows.push(["", percent(tree.width[i], tree.width[view.zoom]) + " of this view", "", ""]);
	if (growsToCallers(i))
		rows.push(["", wayText(i), "", ""]);
	else
		rows.push(own ? ["own", percent(own, everything()) + ofAll(), amount(own), samples(tree.ownSamples[i])]
			: ["own", "none", "", ""]);
	return rows;
}

/*
 * What the weight of a frame is where callers are on their callees: the part of the innermost frame's weight that
 * came this way. That is its own weight if all stacks are shown, else the total weight of the view's function.
 */
function wayText(i) {
	const innermost = tree.isSandwich ? 0 : 1;
	const weight = view.focus < 0 ? OWN : TOTAL;
	let frame = i;

	while (tree.depth[frame] > innermost)
		frame = tree.caller[frame];
	return frame === i ? weight : weight + " of " + labelText(frame) + " called this way";
}

function changeRow(i) {
	const [now, before] = [share(NOW, i), share(BEFORE, i)];
	const points = (100 * (now - before)).toFixed(2);
	const change = changeLook(i) === "s" ? ", no clear change" : "";

	return ["change", percent(before, 1) + " before, " + percent(now, 1) + " now (" + (points > 0 ? "+" : "") + points + " points" + change + ")"];
}

function detailRows(i) {
	if (!IS_SAMPLED)
		return [];
	const { look: kind, function: f } = labelOf(i);
	const whole = tree.width[i];
	const rows = [];
	const states = statesOf(tree, i).map(([state, weight]) => [STATE_NAMES[STATES[state]], weight]);
	const lines = tree.byLine || kind !== "l" && kind !== "n" && kind !== "c" ? [] : linesOf(i);

	if (kind === "l")
		rows.push(["compiled", percent(tree.compiled[i], whole) + " of its " + UNIT]);
	else if (KINDS[kind])
		rows.push(["kind", KINDS[kind]]);
	if (states.length)
		rows.push(["VM", heaviest(states, states.reduce((sum, [, weight]) => sum + weight, 0))]);
	if (lines.length)
		rows.push(["lines", heaviest(lines, whole)]);
	rows.push(...sourceRows(i));
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

	if (tree.isChart && i)
		rows.push(["when", seconds(Math.round(tree.start[i] / 1000)) + " to " + seconds(Math.round((tree.start[i] + tree.width[i]) / 1000)), "", ""]);
	if (everywhere > tree.width[i] && !view.inverted && !tree.isChart && !tree.isSandwich)
		rows.push(["everywhere", percent(everywhere, everything()) + " of all", amount(everywhere), ""]);
	const details = (recorded.compared ? [changeRow(i)] : []).concat(detailRows(i));

	if (tree.chains.has(i))
		details.push(["folded", chainOf(i).join(", ")], ["", "a click opens them"]);
	return [html("b", {}, shownText(i)), table(rows), table(details)];
}

/* The names of a folded chain's frames. */
function chainOf(i) {
	const last = tree.chains.get(i);

	return Array.from({ length: last - i + 1 }, (_, k) => labelOf(i + k).name);
}

function remainderContent(i, count) {
	return [html("b", {}, grouped.format(count) + " frames too narrow to show"),
		(growsToCallers(i) ? IS_SAMPLED ? "callers of " : "holders of " : IS_SAMPLED ? "called by " : "held by ") + labelText(tree.caller[i]) + "; a click zooms there, a search finds each"];
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

	const place = placeOfFrame(i);

	return html("div", { class: "actions" }, act("Zoom", () => zoomTo(i)),
		...(place >= 0 ? [act("Source", () => openSource(places.file[place], places.line[place]))] : []),
		...(i > 0 ? [act("Only this function", () => focusOn(i)), act("Callers and callees", () => sandwichFunction(labelOf(i).function))] : []),
		act("Search it", () => search(labelText(i))),
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

	return [bounds.left + x + Math.min(width / 2, 200), bounds.top + rowTop(tree.level[active]) + ROW / 2];
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
