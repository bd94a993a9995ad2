// SPDX-License-Identifier: MIT
/*
 * What was recorded, and the trees that are made of it. Nothing here knows of
 * the page. Frames and their callers are numbers, callers before callees.
 */

const NOW = 0, BEFORE = 1;	/* the recording and what it is compared with */
const STATES = "nijcgroaeu";	/* letters of the VM's states in the data */
const SMALLEST_SHARE = 1e-5;	/* callers of what is less are not told apart in an inverted tree */
const NODES_MAX = 400000;	/* of an inverted tree */

function metadata(id) {
	const found = document.getElementById(id);

	return found ? found.textContent.split("\n").filter((line) => line !== "") : [];
}

/*
 * The frames as they are in the file, both sides in one list. Each has its
 * caller (-1 for none), the index of its line, its mark, its side, and the
 * weight and number of samples that end in it (own) or pass through it (total).
 * places leads from the lines of the file to frames.
 */
function loadFrames() {
	const functions = metadata("functions").map((line) => ({ look: line[0], text: line.slice(2) }));
	const lines = metadata("lines").map((line) => {
		const space = line.indexOf(" ");

		return { function: Number(line.slice(0, space)), text: line.slice(space + 1) };
	});
	const sides = [metadata("frames"), metadata("baseline")];
	const room = 2 * (sides[NOW].length + sides[BEFORE].length);
	const all = {
		functions, lines, places: [], compared: sides[BEFORE].length > 0, count: 0, pairs: [],
		caller: new Int32Array(room), line: new Int32Array(room),
		mark: new Uint8Array(room), side: new Uint8Array(room),
		own: new Float64Array(room), total: new Float64Array(room),
		ownSamples: new Float64Array(room), samples: new Float64Array(room),
	};
	const leftOut = lines.push({ function: functions.length, text: "[left out]" }) - 1;

	functions.push({ look: "r", text: "[left out]" });
	for (const side of [NOW, BEFORE])
		loadSide(all, sides[side], side, leftOut);
	sumTotals(all);
	return all;
}

function loadSide(all, source, side, leftOut) {
	const path = [];	/* the last frame of each depth */
	const add = (depth, line, mark, own, samples) => {
		const i = all.count++;

		all.caller[i] = depth ? path[depth - 1] : -1;
		all.line[i] = line;
		all.mark[i] = mark;
		all.side[i] = side;
		all.own[i] = own;
		all.ownSamples[i] = samples;
		return i;
	};

	for (const text of source) {
		const [depth, line, mark = 0, samples = 0, rest = 0, ...pairs] = text.split(" ");
		const states = pairs.map((pair) => [STATES.indexOf(pair[0]), Number(pair.slice(1))]);
		const own = states.reduce((sum, [, weight]) => sum + weight, 0);

		path[depth] = add(Number(depth), Number(line), Number(mark), own, Number(samples));
		if (side === NOW)
			all.places.push(path[depth]);
		all.pairs[path[depth]] = states;
		if (Number(rest) > 0)
			add(Number(depth) + 1, leftOut, 0, Number(rest), 0);
	}
}

/*
 * When samples were taken, if the file has it: time in µs after the beginning,
 * the frame in which each ends, state and weight.
 */
function loadHeat(places) {
	const source = metadata("heat");

	if (!source.length)
		return null;
	const [since, until] = source[0].split(" ").map(Number);
	const count = source.length - 1;
	const heat = { since, until, count, time: new Float64Array(count), frame: new Int32Array(count),
		       state: new Uint8Array(count), weight: new Float64Array(count) };
	let time = 0;

	for (let k = 0; k < count; k++) {
		const [delta, frame, state, weight] = source[k + 1].split(" ");

		time += Number(delta);
		heat.time[k] = time;
		/* What is left out on a frame is listed directly behind it. */
		heat.frame[k] = frame[0] === "-" ? places[-Number(frame)] + 1 : places[Number(frame)];
		heat.state[k] = STATES.indexOf(state);
		heat.weight[k] = Number(weight);
	}
	return heat;
}

/* Let the frames have the weight of only some samples: those for which a test of their number is true. */
function weighFrames(all, heat, counts) {
	for (const numbers of [all.own, all.total, all.ownSamples, all.samples])
		numbers.fill(0);
	all.pairs = [];
	for (let k = 0; k < heat.count; k++) {
		if (!counts(k))
			continue;
		const i = heat.frame[k];
		const pairs = all.pairs[i] ||= [];
		const pair = pairs.find(([state]) => state === heat.state[k]);

		all.own[i] += heat.weight[k];
		all.ownSamples[i]++;
		if (pair)
			pair[1] += heat.weight[k];
		else
			pairs.push([heat.state[k], heat.weight[k]]);
	}
	sumTotals(all);
}

/* Callees come after their callers, so from the end each is complete when it is added. */
function sumTotals(all) {
	for (let i = all.count - 1; i >= 0; i--) {
		const caller = all.caller[i];

		all.total[i] += all.own[i];
		all.samples[i] += all.ownSamples[i];
		if (caller >= 0) {
			all.total[caller] += all.total[i];
			all.samples[caller] += all.samples[i];
		}
	}
}

const recorded = loadFrames();
const heat = loadHeat(recorded.places);
const COMPILED = 1, NEAREST = 2, FUNCTION_ONLY = 4;

function functionOf(i) {
	return recorded.lines[recorded.line[i]].function;
}

/* -- Making trees -- */

/*
 * A tree being made: frames with the same label under the same caller are
 * one. The root is there from the start.
 */
function newTree(byLine, inverted) {
	const labels = byLine ? recorded.lines.map(({ function: f, text }) => ({ text, look: recorded.functions[f].look, function: f }))
		: recorded.functions.map(({ look, text }, f) => ({ text, look, function: f }));
	const tree = {
		byLine, inverted, labels, known: new Map(), count: 0,
		of: null,		/* the node of each recorded frame, where it has just one */
		cut: false,		/* an inverted tree that would be too large */
		caller: [], label: [], depth: [],
		total: [[], []], samples: [[], []], own: [], ownSamples: [],
		compiled: [], nearest: [], functionOnly: [], states: [],
	};

	addNode(tree, -1, recorded.count ? labelOf(tree, 0) : 0);
	return tree;
}

function labelOf(tree, i) {
	return tree.byLine ? recorded.line[i] : functionOf(i);
}

function addNode(tree, caller, label) {
	const node = tree.count++;

	tree.caller.push(caller);
	tree.label.push(label);
	tree.depth.push(caller < 0 ? 0 : tree.depth[caller] + 1);
	for (const numbers of [...tree.total, ...tree.samples, tree.own, tree.ownSamples,
			       tree.compiled, tree.nearest, tree.functionOnly])
		numbers.push(0);
	tree.states.push(null);
	return node;
}

function calleeOf(tree, node, label) {
	const key = node * tree.labels.length + label;
	let callee = tree.known.get(key);

	if (callee === undefined) {
		callee = addNode(tree, node, label);
		tree.known.set(key, callee);
	}
	return callee;
}

/* The weight of something that passes through frame i, which the node stands for. */
function addWeight(tree, node, i, side, weight, samples) {
	const mark = recorded.mark[i];

	tree.total[side][node] += weight;
	tree.samples[side][node] += samples;
	if (side !== NOW)
		return;
	if (mark & COMPILED)
		tree.compiled[node] += weight;
	if (mark & NEAREST)
		tree.nearest[node] += weight;
	if (mark & FUNCTION_ONLY)
		tree.functionOnly[node] += weight;
}

/* pairs of a state and a weight, or nothing. */
function addStates(tree, node, pairs, side) {
	if (side !== NOW || !pairs)
		return;
	for (const [state, weight] of pairs)
		(tree.states[node] ||= new Float64Array(STATES.length))[state] += weight;
}

/* Callers below their callees: every stack, or with a focus what this function does, wherever it is called. */
function treeOfCallees(byLine, focus) {
	const tree = newTree(byLine, false);

	tree.of = new Int32Array(recorded.count).fill(-1);
	for (let i = 0; i < recorded.count; i++) {
		const below = recorded.caller[i] < 0 ? -1 : tree.of[recorded.caller[i]];
		const begins = below < 0 && (focus < 0 || functionOf(i) === focus);
		const side = recorded.side[i];
		let node = -1;

		if (begins)
			node = focus < 0 ? 0 : calleeOf(tree, 0, labelOf(tree, i));
		else if (below >= 0)
			node = calleeOf(tree, below, labelOf(tree, i));
		tree.of[i] = node;
		if (node < 0)
			continue;
		addWeight(tree, node, i, side, recorded.total[i], recorded.samples[i]);
		if (begins && node > 0)
			addWeight(tree, 0, 0, side, recorded.total[i], recorded.samples[i]);
		if (side === NOW) {
			tree.own[node] += recorded.own[i];
			tree.ownSamples[node] += recorded.ownSamples[i];
		}
		addStates(tree, node, recorded.pairs[i], side);
	}
	/* So far the states are those of own weight. */
	for (let node = tree.count - 1; node > 0; node--)
		addStates(tree, tree.caller[node], tree.states[node] && tree.states[node].entries(), NOW);
	return finish(tree);
}

/* Where an inverted tree begins: the ends of all stacks, or the outermost calls of the function in focus. */
function beginnings(focus) {
	const { own, total, ownSamples, samples, caller } = recorded;
	const within = new Uint8Array(recorded.count);
	const found = [];

	for (let i = 0; i < recorded.count; i++) {
		if (focus < 0) {
			if (own[i] > 0)
				found.push({ from: i, at: i, weight: own[i], samples: ownSamples[i] });
			continue;
		}
		within[i] = caller[i] >= 0 ? within[caller[i]] : 0;
		if (!within[i] && functionOf(i) === focus) {
			within[i] = 1;
			found.push({ from: i, at: i, weight: total[i], samples: samples[i] });
		}
	}
	return found;
}

/* Pairs of state and weight of what ends in each frame, or with a focus passes through it. */
function statesOfBeginnings(focus) {
	const sums = [];

	if (focus < 0)
		return recorded.pairs;
	for (let i = recorded.count - 1; i >= 0; i--) {
		const caller = recorded.caller[i];

		for (const [state, weight] of recorded.pairs[i] || [])
			(sums[i] ||= new Float64Array(STATES.length))[state] += weight;
		for (let state = 0; sums[i] && caller >= 0 && state < STATES.length; state++)
			(sums[caller] ||= new Float64Array(STATES.length))[state] += sums[i][state];
	}
	return sums.map((states) => [...states.entries()]);
}

/*
 * Callees below their callers: what ends in a function, by who called it.
 * Row by row, so that a limit cuts what is deepest.
 */
function treeOfCallers(byLine, focus) {
	const tree = newTree(byLine, true);
	const states = statesOfBeginnings(focus);
	const stacks = [];		/* those that pass through each node, at the frame it stands for */
	const step = (node, stack) => {
		const side = recorded.side[stack.from];

		addWeight(tree, node, node ? stack.at : 0, side, stack.weight, stack.samples);
		addStates(tree, node, states[stack.from], side);
	};

	stacks[0] = beginnings(focus);
	for (const stack of stacks[0])
		step(0, stack);
	for (let node = 0; node < tree.count; node++) {
		const worth = [NOW, BEFORE].some((side) => tree.total[side][node] > tree.total[side][0] * SMALLEST_SHARE);

		tree.cut ||= tree.count >= NODES_MAX;
		for (const stack of worth && !tree.cut ? stacks[node] : []) {
			if (node)
				stack.at = recorded.caller[stack.at];
			if (stack.at < 0 || recorded.caller[stack.at] < 0)
				continue;
			const callee = calleeOf(tree, node, labelOf(tree, stack.at));

			(stacks[callee] ||= []).push(stack);
			step(callee, stack);
		}
		stacks[node] = null;
	}
	return finish(tree);
}

/* -- Finished trees -- */

/*
 * Number the nodes callers before callees, siblings by label, or in an
 * inverted tree by weight; below node i are i + 1 ... end[i] - 1.
 */
function finish(tree) {
	const { count, label } = tree;
	const weight = tree.total[NOW];
	const byLabel = (a, b) => label[b] - label[a];
	const byWeight = (a, b) => weight[a] - weight[b] || byLabel(a, b);
	const lastFirst = Int32Array.from({ length: count }, (_, node) => node).sort(tree.inverted ? byWeight : byLabel);
	const first = new Int32Array(count).fill(-1), next = new Int32Array(count).fill(-1);
	const order = new Int32Array(count), place = new Int32Array(count);
	const waiting = [0];
	let done = 0;

	for (const node of lastFirst) {
		const caller = tree.caller[node];

		if (caller >= 0) {
			next[node] = first[caller];
			first[caller] = node;
		}
	}
	/* A node's next sibling waits below its first callee. */
	while (waiting.length) {
		const node = waiting.pop();

		place[node] = done;
		order[done++] = node;
		if (next[node] >= 0)
			waiting.push(next[node]);
		if (first[node] >= 0)
			waiting.push(first[node]);
	}
	const arranged = (numbers) => Float64Array.from(order, (node) => numbers[node]);
	const made = {
		byLine: tree.byLine, cut: tree.cut, labels: tree.labels, count, rows: [], side: -1,
		label: Int32Array.from(order, (node) => tree.label[node]),
		depth: Int32Array.from(order, (node) => tree.depth[node]),
		caller: Int32Array.from(order, (node) => node ? place[tree.caller[node]] : -1),
		end: new Int32Array(count), start: new Float64Array(count),
		total: tree.total.map(arranged), samples: tree.samples.map(arranged),
		own: arranged(tree.own), ownSamples: arranged(tree.ownSamples),
		compiled: arranged(tree.compiled), nearest: arranged(tree.nearest), functionOnly: arranged(tree.functionOnly),
		states: Array.from(order, (node) => tree.states[node]),
		of: tree.of && tree.of.map((node) => node < 0 ? -1 : place[node]),
	};

	for (let i = count - 1; i >= 0; i--) {
		made.end[i] = Math.max(made.end[i], i + 1);
		if (i)
			made.end[made.caller[i]] = Math.max(made.end[made.caller[i]], made.end[i]);
	}
	return made;
}

/*
 * Lay the frames out by the weight of one side: start is the distance from
 * the left edge, rows[d] lists the frames of depth d from left to right.
 * What has no weight there is left out.
 */
function layOut(tree, side) {
	const next = [];	/* where the next callee of the last frame of each depth starts */
	const width = tree.total[side];

	if (tree.side === side)
		return;
	tree.side = side;
	tree.width = width;
	tree.rows = [];
	for (let i = 0; i < tree.count; i++) {
		const depth = tree.depth[i];

		tree.start[i] = depth ? next[depth - 1] : 0;
		next[depth] = tree.start[i];
		if (depth)
			next[depth - 1] += width[i];
		if (width[i] > 0 || i === 0)
			(tree.rows[depth] ||= []).push(i);
	}
}

/* The weight of frames below (and with) i that match, each part counted once though matches nest. */
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

/*
 * The share of all that was recorded of stacks in which a frame matches. Trees
 * may hold less: inverted ones end where their parts get small.
 */
function shareOf(tree, side, matches) {
	const matched = new Uint8Array(recorded.count);
	let part = 0, whole = 0;

	for (let i = 0; i < recorded.count; i++) {
		const caller = recorded.caller[i];

		matched[i] = matches(labelOf(tree, i)) || (caller >= 0 && matched[caller]) ? 1 : 0;
		if (recorded.side[i] === side) {
			whole += recorded.own[i];
			part += matched[i] * recorded.own[i];
		}
	}
	return whole ? part / whole : 0;
}

/* Own weight of each kind of frame or state of the VM, for the legend: a map by key. */
function ownWeights(keys) {
	const weights = new Map();

	for (let i = 0; i < recorded.count; i++) {
		if (recorded.side[i] !== NOW || !recorded.own[i])
			continue;
		for (const [key, weight] of keys(i))
			weights.set(key, (weights.get(key) || 0) + weight);
	}
	return weights;
}
