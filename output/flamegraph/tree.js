// SPDX-License-Identifier: MIT
/*
 * Make trees of the recorded frames: from callers to callees, from callees to
 * their callers, both around one function, and in order of time. Nothing here
 * depends on the page.
 */

const SMALLEST_SHARE = 1e-5;	/* an inverted tree does not show the callers of smaller nodes */
const NODES_MAX = 400000;	/* in an inverted tree or in one of time */

/* -- Labels -- */

const sharedLabels = new Map();

/* The labels of functions or lines. All trees share them, and what has been found in them. */
function labelsOf(byLine) {
	if (!sharedLabels.has(byLine))
		sharedLabels.set(byLine, byLine ? recorded.lines.map((line) => ({ ...line, look: recorded.functions[line.function].look }))
			: recorded.functions.map((f, i) => ({ ...f, function: i })));
	return sharedLabels.get(byLine);
}

/* -- Growing a tree -- */

const NUMBERS = ["caller", "label", "depth"];
const WEIGHTS = ["now", "before", "samplesNow", "samplesBefore", "own", "ownSamples", "compiled", "nearest", "functionOnly"];

/*
 * A tree that grows. Frames with the same label and the same caller become one
 * node; a table finds it by both. now and before are weights of the two sides,
 * all other weights of one.
 */
class GrowingTree {
	constructor(byLine, side, room) {
		this.byLine = byLine;
		this.side = side;
		this.labelOf = byLine ? recorded.line : recorded.function;
		this.labels = labelsOf(byLine);
		this.count = 0;
		this.cut = false;	/* it was too large and is cut */
		this.of = null;		/* the node of each recorded frame, if each has one */
		this.room = Math.max(room, 16);
		for (const name of NUMBERS)
			this[name] = new Int32Array(this.room);
		for (const name of WEIGHTS)
			this[name] = new Float64Array(this.room);
		this.states = new Float64Array(this.room * STATES.length);
		this.fillTable();
		this.add(-1, recorded.count ? this.labelOf[0] : 0);
	}

	grow() {
		const grown = (numbers) => {
			const larger = new numbers.constructor(2 * numbers.length);

			larger.set(numbers);
			return larger;
		};

		for (const name of [...NUMBERS, ...WEIGHTS, "states"])
			this[name] = grown(this[name]);
		this.room *= 2;
		this.fillTable();
	}

	fillTable() {
		let size = 1;

		while (size < 2 * this.room)
			size *= 2;
		this.table = new Int32Array(size);
		this.mask = size - 1;
		for (let node = 1; node < this.count; node++)
			this.table[this.placeOf(this.caller[node], this.label[node])] = node;
	}

	/* Where in the table a node is or would be. The root is in no place, so 0 means free. */
	placeOf(caller, label) {
		let place = Math.imul(caller, 0x9e3779b1) ^ Math.imul(label, 0x85ebca6b);

		for (place = (place ^ place >>> 15) & this.mask; this.table[place]; place = (place + 1) & this.mask) {
			const node = this.table[place];

			if (this.caller[node] === caller && this.label[node] === label)
				break;
		}
		return place;
	}

	add(caller, label) {
		if (this.count === this.room)
			this.grow();
		const node = this.count++;

		this.caller[node] = caller;
		this.label[node] = label;
		this.depth[node] = caller < 0 ? 0 : this.depth[caller] + 1;
		return node;
	}

	calleeOf(caller, label) {
		const place = this.placeOf(caller, label);

		if (this.table[place])
			return this.table[place];
		const { table } = this;
		const node = this.add(caller, label);

		this.table[table === this.table ? place : this.placeOf(caller, label)] = node;
		return node;
	}

	/* Add weight that passes through frame i to the frame's node. */
	addWeight(node, i, side, weight, samples) {
		const mark = recorded.mark[i];

		this[side === NOW ? "now" : "before"][node] += weight;
		this[side === NOW ? "samplesNow" : "samplesBefore"][node] += samples;
		if (side !== this.side)
			return;
		if (mark & COMPILED)
			this.compiled[node] += weight;
		if (mark & NEAREST)
			this.nearest[node] += weight;
		if (mark & FUNCTION_ONLY)
			this.functionOnly[node] += weight;
	}

	/* Add the weights by state of number i of a list to a node. */
	addStates(node, states, i) {
		const into = node * STATES.length, from = i * STATES.length;

		for (let state = 0; state < STATES.length; state++)
			this.states[into + state] += states[from + state];
	}
}

/* -- Callers below callees -- */

/*
 * Every stack, or with a focus, those of all calls of this function. With
 * isRoot, the focus itself is the root.
 */
function treeOfCallees(byLine, focus, shownSide, isRoot = false) {
	const tree = new GrowingTree(byLine, shownSide, recorded.count + 1);
	const { labelOf } = tree;
	const of = new Int32Array(recorded.count).fill(-1);

	for (let i = 0; i < recorded.count; i++) {
		const caller = recorded.caller[i];
		const below = caller < 0 ? -1 : of[caller];
		const begins = below < 0 && (focus < 0 || recorded.function[i] === focus);
		const side = recorded.side[i];

		if (!begins && below < 0)
			continue;
		const node = !begins ? tree.calleeOf(below, labelOf[i])
			: focus < 0 || isRoot ? 0 : tree.calleeOf(0, labelOf[i]);

		of[i] = node;
		tree.addWeight(node, i, side, recorded.total[i], recorded.samples[i]);
		if (begins && node > 0)
			tree.addWeight(0, 0, side, recorded.total[i], recorded.samples[i]);
		if (side === shownSide) {
			tree.own[node] += recorded.own[i];
			tree.ownSamples[node] += recorded.ownSamples[i];
			tree.addStates(node, recorded.states, i);
		}
	}
	/* So far the states count own weight only. Add those of the callees. */
	for (let node = tree.count - 1; node > 0; node--)
		tree.addStates(tree.caller[node], tree.states, node);
	tree.of = of;
	return finish(tree, false);
}

/* -- Callees below their callers -- */

/* The frames where an inverted tree begins: the ends of all stacks, or the outermost calls of the focus. */
function beginnings(focus) {
	const within = new Uint8Array(recorded.count);
	const found = [];

	for (let i = 0; i < recorded.count; i++) {
		if (focus < 0) {
			if (recorded.own[i] > 0)
				found.push(i);
			continue;
		}
		within[i] = recorded.caller[i] >= 0 ? within[recorded.caller[i]] : 0;
		if (!within[i] && recorded.function[i] === focus) {
			within[i] = 1;
			found.push(i);
		}
	}
	return found;
}

/* Weights by state that end in each frame, or with a focus, pass through it. */
function statesOfBeginnings(focus) {
	const sums = focus < 0 ? recorded.states : recorded.states.slice();

	for (let i = recorded.count - 1; focus >= 0 && i > 0; i--) {
		const caller = recorded.caller[i];

		for (let state = 0; caller >= 0 && state < STATES.length; state++)
			sums[caller * STATES.length + state] += sums[i * STATES.length + state];
	}
	return sums;
}

/*
 * Own weight of functions by their callers. The tree grows row by row, so that
 * the limit cuts the deepest rows.
 */
function treeOfCallers(byLine, focus, shownSide, isRoot = false) {
	const tree = new GrowingTree(byLine, shownSide, recorded.count + 1);
	const states = statesOfBeginnings(focus);
	const weights = focus < 0 ? recorded.own : recorded.total;
	const samples = focus < 0 ? recorded.ownSamples : recorded.samples;
	const from = Int32Array.from(beginnings(focus));	/* the stacks that still grow, */
	const at = from.slice();				/* the frame that each has reached, */
	const nodes = new Int32Array(from.length);		/* and the frame's node */
	let growing = from.length;
	const step = (k, node, i) => {
		const side = recorded.side[from[k]];

		nodes[k] = node;
		tree.addWeight(node, i, side, weights[from[k]], samples[from[k]]);
		if (side === shownSide)
			tree.addStates(node, states, from[k]);
	};

	for (let k = 0; k < growing; k++)
		step(k, 0, isRoot ? from[k] : 0);
	for (let row = isRoot ? 1 : 0; growing > 0; row++) {
		let kept = 0;

		for (let k = 0; k < growing && !tree.cut; k++) {
			const node = nodes[k];
			const i = row ? recorded.caller[at[k]] : at[k];

			if (i < 0 || recorded.caller[i] < 0 || !(tree.now[node] > tree.now[0] * SMALLEST_SHARE ||
								 tree.before[node] > tree.before[0] * SMALLEST_SHARE))
				continue;
			tree.cut = tree.count >= NODES_MAX;
			from[kept] = from[k];
			at[kept] = i;
			step(kept++, tree.calleeOf(node, tree.labelOf[i]), i);
		}
		growing = tree.cut ? 0 : kept;
	}
	return finish(tree, true);
}

/* -- Finished trees -- */

/* For each node the first of its callees, and its next sibling: by label, or by weight, heaviest first. */
function orderSiblings(tree, byWeight) {
	const { count, label, caller } = tree;
	const first = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
	const inOrder = (a, b) => (byWeight ? tree.now[b] - tree.now[a] : 0) || label[a] - label[b];

	for (let node = count - 1; node > 0; node--) {
		next[node] = first[caller[node]];
		first[caller[node]] = node;
	}
	for (let node = 0; node < count; node++) {
		if (first[node] < 0 || next[first[node]] < 0)
			continue;
		const siblings = [];

		for (let callee = first[node]; callee >= 0; callee = next[callee])
			siblings.push(callee);
		siblings.sort(inOrder);
		first[node] = siblings[0];
		siblings.forEach((callee, k) => { next[callee] = k + 1 < siblings.length ? siblings[k + 1] : -1; });
	}
	return { first, next };
}

/* Number the nodes: callers before callees, siblings in order. The descendants of i are i + 1 ... end[i] - 1. */
function finish(tree, byWeight) {
	const { count } = tree;
	const { first, next } = orderSiblings(tree, byWeight);
	const order = new Int32Array(count), place = new Int32Array(count);
	const waiting = [0];
	let done = 0;

	/* Push the next sibling first, so that the first callee is taken before it. */
	while (waiting.length) {
		const node = waiting.pop();

		place[node] = done;
		order[done++] = node;
		if (next[node] >= 0)
			waiting.push(next[node]);
		if (first[node] >= 0)
			waiting.push(first[node]);
	}
	return arranged(tree, order, place);
}

/* The tree with its nodes in an order; place is the inverse of order. Both are null for the order as it is. */
function arranged(tree, order, place) {
	const { count } = tree;
	const sorted = (numbers) => {
		if (!order)
			return numbers.subarray(0, count);
		const made = new numbers.constructor(count);

		for (let i = 0; i < count; i++)
			made[i] = numbers[order[i]];
		return made;
	};
	const made = {
		byLine: tree.byLine, cut: tree.cut, labels: tree.labels, count, rows: [], side: -1,
		isChart: false,		/* starts and weights are times */
		isSandwich: false,
		label: sorted(tree.label), depth: sorted(tree.depth), caller: sorted(tree.caller),
		end: new Int32Array(count), start: new Float64Array(count),
		total: [sorted(tree.now), sorted(tree.before)], samples: [sorted(tree.samplesNow), sorted(tree.samplesBefore)],
		own: sorted(tree.own), ownSamples: sorted(tree.ownSamples),
		compiled: sorted(tree.compiled), nearest: sorted(tree.nearest), functionOnly: sorted(tree.functionOnly),
		states: tree.states, stateOf: order,
		of: tree.of && (place ? tree.of.map((node) => node < 0 ? -1 : place[node]) : tree.of),
		hidden: new Uint8Array(count),
		chains: new Map(),	/* for the lowest frame of a folded chain, the highest */
	};

	for (let i = 1; i < count && place; i++)
		made.caller[i] = place[made.caller[i]];
	setEnds(made);
	made.level = made.depth;
	return made;
}

function setEnds(tree) {
	for (let i = tree.count - 1; i >= 0; i--) {
		tree.end[i] = Math.max(tree.end[i], i + 1);
		if (i)
			tree.end[tree.caller[i]] = Math.max(tree.end[tree.caller[i]], tree.end[i]);
	}
}

/* Pairs of a state and the weight of a node's samples in it, without zeros. */
function statesOf(tree, i) {
	const from = (tree.stateOf ? tree.stateOf[i] : i) * STATES.length;
	const pairs = [];

	for (let state = 0; state < STATES.length; state++) {
		if (tree.states[from + state] > 0)
			pairs.push([state, tree.states[from + state]]);
	}
	return pairs;
}

/*
 * Lay out the frames by the weight of one side: start is the distance from the
 * left edge, rows[level] lists the frames of a level from left to right. Frames
 * without weight on that side are left out, and those in a folded chain.
 */
function layOut(tree, side) {
	const next = [];	/* for the last frame of each depth: the start of its next callee */
	const width = tree.total[side];

	if (tree.side === side)
		return;
	tree.side = side;
	tree.width = width;
	tree.rows = [];
	for (let i = 0; i < tree.count; i++) {
		const depth = tree.depth[i];

		if (!tree.isChart) {
			/* Around the root of a sandwich, callees begin at the left edge as callers do. */
			if (tree.isSandwich && i === tree.callees)
				next[0] = 0;
			tree.start[i] = depth ? next[depth - 1] : 0;
			next[depth] = tree.start[i];
			if (depth)
				next[depth - 1] += width[i];
		}
		if ((width[i] > 0 || i === 0) && !tree.hidden[i])
			(tree.rows[tree.level[i]] ||= []).push(i);
	}
}

/* The weight of the matching frames among i and its descendants. Nested matches count once. */
function weightOf(tree, i, matches) {
	const end = tree.end[i];
	let weight = 0;

	while (i < end) {
		if (matches(tree.label[i])) {
			weight += tree.width[i];
			i = tree.end[i];
		} else {
			i++;
		}
	}
	return weight;
}

/* -- Folding -- */

const CHAIN_MIN = 3;	/* frames; shorter chains are not folded */

/*
 * Fold the native frames at the bottom that all of their samples share, such
 * as those from main() to a worker's loop: each is the only callee of the one
 * below and has no own weight. The lowest is shown for all of them. A frame of
 * --by may be below.
 */
function foldChains(tree) {
	const isLink = (i) => tree.labels[tree.label[i]].look === "n";
	const onlyCallee = (i) => {
		const callee = i + 1;

		return callee < tree.end[i] && tree.end[callee] === tree.end[i] &&
			[NOW, BEFORE].every((side) => tree.total[side][callee] === tree.total[side][i]) ? callee : -1;
	};

	tree.level = tree.depth.slice();
	for (let i = 1; i < tree.count; i++) {
		if (tree.depth[i] > 2 || !isLink(i) || tree.depth[i] === 2 && isLink(tree.caller[i]))
			continue;
		let last = i;

		for (let callee = onlyCallee(i); callee >= 0 && isLink(callee); callee = onlyCallee(callee))
			last = callee;
		const links = tree.depth[last] - tree.depth[i] + 1;

		if (links < CHAIN_MIN)
			continue;
		tree.chains.set(i, last);
		for (let j = i + 1; j < tree.end[i]; j++) {
			tree.hidden[j] = j <= last ? 1 : 0;
			tree.level[j] -= links - 1;
		}
	}
	return tree;
}

/* The frame that stands for i: i itself, or the lowest of its folded chain. */
function shownFor(tree, i) {
	while (tree.hidden[i])
		i = tree.caller[i];
	return i;
}

/* -- A function between its callers and callees -- */

/*
 * One function in the middle, its callers above, the nearest first, its
 * callees below. Node numbers: the root, the callers, then the callees from
 * tree.callees on. Levels count from the top.
 */
function sandwichOf(byLine, focus, side) {
	const above = treeOfCallers(byLine, focus, side, true), below = treeOfCallees(byLine, focus, side, true);
	const shift = above.count - 1;
	const joined = (ups, downs, change = (number) => number) => {
		const made = new ups.constructor(above.count + below.count - 1);

		made.set(ups);
		made.set(downs.subarray(1).map(change), above.count);
		made[0] = downs[0];
		return made;
	};
	const states = (tree) => {
		const sorted = new Float64Array(tree.count * STATES.length);

		for (let i = 0; i < tree.count; i++)
			statesOf(tree, i).forEach(([state, weight]) => { sorted[i * STATES.length + state] = weight; });
		return sorted;
	};
	const deepest = above.depth.reduce((most, depth) => Math.max(most, depth), 0);
	const made = {
		...below, isSandwich: true, cut: above.cut, count: above.count + below.count - 1, callees: above.count,
		rows: [], side: -1, of: null, stateOf: null, states: new Float64Array(0),
	};

	for (const key of ["label", "depth", "own", "ownSamples", "compiled", "nearest", "functionOnly"])
		made[key] = joined(above[key], below[key]);
	for (const key of ["total", "samples"])
		made[key] = [NOW, BEFORE].map((side) => joined(above[key][side], below[key][side]));
	made.caller = joined(above.caller, below.caller, (caller) => caller ? caller + shift : 0);
	made.states = new Float64Array(made.count * STATES.length);
	made.states.set(states(above));
	made.states.set(states(below).subarray(STATES.length), above.count * STATES.length);
	made.level = made.depth.map((depth, i) => i < made.callees ? deepest - depth : deepest + depth);
	made.end = new Int32Array(made.count);
	made.start = new Float64Array(made.count);
	made.hidden = new Uint8Array(made.count);
	setEnds(made);
	/* The root is the function, whatever its line. */
	made.label[0] = byLine ? made.labels.length : focus;
	if (byLine)
		made.labels = [...made.labels, labelsOf(false)[focus]];
	return made;
}
