// SPDX-License-Identifier: MIT
/*
 * The list of the hottest functions beside the frames, below them on narrow
 * screens. A click puts a function between its callers and callees.
 */

const HOTTEST_MAX = 100;	/* rows */

let hottestBy = "own";		/* the column it is sorted by */

const hottestBody = html("tbody", {});
const hottestHeads = ["own", "total"].map((column) => {
	const head = html("button", { type: "button" }, column);

	head.addEventListener("click", () => {
		hottestBy = column;
		showHottest();
	});
	return html("th", { scope: "col" }, head);
});
const hottestBox = html("section", { class: "hottest", "aria-label": "Hottest functions", tabindex: "0" },
	html("table", {}, html("thead", {}, html("tr", {}, ...hottestHeads, html("th", { scope: "col" }, "function"))), hottestBody));

function hottestRow(f, own, total, whole) {
	const label = recorded.functions[f];
	const name = html("button", { type: "button", title: label.text + ": its callers and callees" },
		html("span", { class: "name" }, label.name), label.place ? " " + label.place : "");
	const swatch = svg("svg", { "aria-hidden": "true" }, svg("rect", { class: "f " + label.look, width: 8, height: 12, rx: 2 }));

	name.addEventListener("click", () => sandwichFunction(f));
	return html("tr", f === view.focus ? { class: "chosen" } : {}, html("td", {}, shortPercent(own, whole) || "0"),
		html("td", {}, shortPercent(total, whole) || "0"), html("td", {}, swatch, name));
}

/* The functions with weight, the one with most of the chosen column first. */
function hottestFunctions({ own, total }) {
	const by = { own, total }[hottestBy], other = { own: total, total: own }[hottestBy];

	return recorded.functions.map((_, f) => f).filter((f) => total[f] > 0)
		.sort((a, b) => by[b] - by[a] || other[b] - other[a] || a - b);
}

/* Call this when the view has changed. */
function showHottest() {
	hottestBox.hidden = !view.list;
	if (hottestBox.hidden)
		return;
	const weighed = weighFunctions(view.side);
	const whole = weighed.own.reduce((sum, weight) => sum + weight, 0);

	hottestHeads.forEach((head) => head.setAttribute("aria-sort", head.textContent === hottestBy ? "descending" : "none"));
	hottestBody.replaceChildren(...hottestFunctions(weighed).slice(0, HOTTEST_MAX)
		.map((f) => hottestRow(f, weighed.own[f], weighed.total[f], whole)));
}
