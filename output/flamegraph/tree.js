// SPDX-License-Identifier: MIT
/*
 * Load the recording and make trees of it. Nothing here depends on the page.
 * Frames and their callers are numbers, callers before callees.
 */

const NOW = 0, BEFORE = 1;	/* the sides: the recording and its baseline */
const STATES = "nijcgroaeu";	/* letters of the VM's states in the data */
const SMALLEST_SHARE = 1e-5;	/* an inverted tree does not show the callers of smaller nodes */
const NODES_MAX = 400000;	/* in an inverted tree */

function metadata(id) {
	const found = document.getElementById(id);

	return found ? found.textContent.split("\n").filter((line) => line !== "") : [];
}

/*
 * Load the frames in the file, both sides in one list. Each has its caller (-1
 * for none), the index of its line, its mark, its side, and the weight and
 * number of samples that end in it (own) or pass through it (total, samples).
 * places maps the file's lines of "frames" to frames.
 */
function loadFrames() {
	const functions = metadata("functions").map((line) => ({ look: line[0], text: line.slice(2) }));
	const lines = metadata("lines").map((line) => {
		const space = line.indexOf(" ");

		return { function: Number(line.slice(0, space)), text: line.slice(space + 1) };
	});
	const sides = [metadata("frames"), metadata("baseline")];

	if (document.getElementById("changed"))
		functions.forEach((f) => { f.same = true; });
	for (const i of metadata("changed"))
		functions[i].same = false;
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
 * Load the samples of the heat map: time in µs after the beginning, the frame
 * in which each ends, state and weight. null if the file has none.
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
		/* The "[left out]" callee of a frame follows it directly in the list. */
		heat.frame[k] = frame[0] === "-" ? places[-Number(frame)] + 1 : places[Number(frame)];
		heat.state[k] = STATES.indexOf(state);
		heat.weight[k] = Number(weight);
	}
	return heat;
}

/* Give the frames the weight of only those samples for whose number counts() is true. */
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

/* Go backwards: callees come after their callers, so each is complete when its caller gets its weight. */
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

/* Begin a tree, with its root. Frames with the same label and the same caller become one node. */
function newTree(byLine, inverted) {
	const labels = byLine ? recorded.lines.map(({ function: f, text }) => ({ text, look: recorded.functions[f].look, function: f }))
		: recorded.functions.map(({ look, text }, f) => ({ text, look, function: f }));
	const tree = {
		byLine, inverted, labels, known: new Map(), count: 0,
		of: null,		/* the node of each recorded frame; null in an inverted tree */
		cut: false,		/* an inverted tree was too large and is cut */
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

/* Add weight that passes through frame i to the frame's node. */
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

/* Add pairs of a state and a weight, if there are any. */
function addStates(tree, node, pairs, side) {
	if (side !== NOW || !pairs)
		return;
	for (const [state, weight] of pairs)
		(tree.states[node] ||= new Float64Array(STATES.length))[state] += weight;
}

/* A tree with callers below their callees: every stack, or with a focus, those of all calls of this function. */
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
	/* So far the states count own weight only. Add those of the callees. */
	for (let node = tree.count - 1; node > 0; node--)
		addStates(tree, tree.caller[node], tree.states[node] && tree.states[node].entries(), NOW);
	return finish(tree);
}

/* The beginnings of an inverted tree: the ends of all stacks, or the outermost calls of the focus. */
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

/* For each frame, pairs of state and weight that end in it, or with a focus, pass through it. */
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
 * A tree with callees below their callers: own weight of functions by their
 * callers. It grows row by row, so that the limit cuts the deepest rows.
 */
function treeOfCallers(byLine, focus) {
	const tree = newTree(byLine, true);
	const states = statesOfBeginnings(focus);
	const stacks = [];		/* for each node, the stacks through it; .at is the node's frame */
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
 * Number the nodes: callers before callees, siblings by label, or by weight in
 * an inverted tree. The descendants of node i are i + 1 ... end[i] - 1.
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
 * Lay out the frames by the weight of one side: start is the distance from the
 * left edge, rows[d] lists the frames of depth d from left to right. Frames
 * without weight on that side are left out.
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

		tree.start[i] = depth ? next[depth - 1] : 0;
		next[depth] = tree.start[i];
		if (depth)
			next[depth - 1] += width[i];
		if (width[i] > 0 || i === 0)
			(tree.rows[depth] ||= []).push(i);
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

/*
 * The share, in the whole recording, of stacks with a matching frame. A tree
 * may hold less: an inverted one leaves out the callers of small nodes.
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

/* Own weight by kind of frame or state of the VM, for the legend: a map by key. */
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
