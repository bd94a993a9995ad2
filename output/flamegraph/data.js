// SPDX-License-Identifier: MIT
/*
 * Load the recording in the file: frames, and the samples behind them. Nothing
 * here depends on the page. Frames are numbers, callers before callees. Large
 * numbers of things are in typed arrays, because a file may hold 200,000 frames.
 */

const NOW = 0, BEFORE = 1;	/* the sides: the recording and its baseline */
const STATES = "nijcgroaeu";	/* letters of the VM's states in the data */
const COMPILED = 1, NEAREST = 2, FUNCTION_ONLY = 4;	/* bits of a frame's mark */

function metadata(id) {
	const found = document.getElementById(id);

	return found ? found.textContent.split("\n").filter((line) => line !== "") : [];
}

/*
 * A label: all of its text, and its parts to shorten it by. A tab is between
 * the name and the place, and after the package root at the place's beginning.
 */
function labelOfText(source) {
	const [name, ...places] = source.split("\t");

	return { text: places.length ? name + " " + places.join("") : name, name, place: places.length ? places[places.length - 1] : "" };
}

/*
 * The frames of both sides in one list. Each has its caller (-1 for none), the
 * index of its line and function, its mark, its side, and the weight and
 * number of samples that end in it (own) or pass through it (total, samples).
 * states has own weights by state. places maps the file's "frames" to frames.
 */
function loadFrames() {
	const functions = metadata("functions").map((line) => ({ look: line[0], ...labelOfText(line.slice(2)) }));
	const lines = metadata("lines").map((line) => {
		const space = line.indexOf(" ");

		return { function: Number(line.slice(0, space)), ...labelOfText(line.slice(space + 1)) };
	});
	const sides = [metadata("frames"), metadata("baseline")];

	if (document.getElementById("changed"))
		functions.forEach((f) => { f.same = true; });
	for (const i of metadata("changed"))
		functions[i].same = false;
	const room = 2 * (sides[NOW].length + sides[BEFORE].length);
	const all = {
		functions, lines, compared: sides[BEFORE].length > 0, count: 0,
		places: new Int32Array(sides[NOW].length),
		caller: new Int32Array(room), line: new Int32Array(room), function: new Int32Array(room),
		mark: new Uint8Array(room), side: new Uint8Array(room),
		own: new Float64Array(room), total: new Float64Array(room),
		ownSamples: new Float64Array(room), samples: new Float64Array(room),
		states: new Float64Array(room * STATES.length),
	};
	const leftOut = lines.push({ function: functions.length, ...labelOfText("[left out]") }) - 1;

	functions.push({ look: "r", ...labelOfText("[left out]") });
	for (const side of [NOW, BEFORE])
		loadSide(all, sides[side], side, leftOut);
	sumTotals(all);
	return all;
}

function loadSide(all, source, side, leftOut) {
	const path = [];	/* the last frame of each depth */
	const add = (depth, line, mark, samples) => {
		const i = all.count++;

		all.caller[i] = depth ? path[depth - 1] : -1;
		all.line[i] = line;
		all.function[i] = all.lines[line].function;
		all.mark[i] = mark;
		all.side[i] = side;
		all.ownSamples[i] = samples;
		return i;
	};

	source.forEach((text, place) => {
		const fields = text.split(" ");
		const depth = Number(fields[0]);
		const i = add(depth, Number(fields[1]), Number(fields[2] || 0), Number(fields[3] || 0));

		path[depth] = i;
		if (side === NOW)
			all.places[place] = i;
		for (let field = 5; field < fields.length; field++)
			addState(all, i, STATES.indexOf(fields[field][0]), Number(fields[field].slice(1)));
		if (Number(fields[4] || 0) > 0)
			all.own[add(depth + 1, leftOut, 0, 0)] = Number(fields[4]);
	});
}

function addState(all, i, state, weight) {
	all.own[i] += weight;
	all.states[i * STATES.length + state] += weight;
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

/* -- Samples -- */

/* The threads in their phases: pid, tid, and the names of process, thread and phase. */
function loadThreads() {
	return metadata("threads").map((line) => {
		const [, pid, tid, names] = line.match(/^(\d+) (\d+) (.*)$/);
		const [process, thread, phase] = names.split("\t");

		return { pid, tid, process, thread, phase };
	});
}

/*
 * The samples: the frame in which each ends, state, weight, number, and index
 * of its thread. With times ("moments" in the file) they have their time in µs
 * after the beginning, in order; without ("parts"), one stands for all equal
 * ones. null if the file has neither.
 */
function loadSamples() {
	const timed = document.getElementById("moments") !== null;
	const source = metadata(timed ? "moments" : "parts");

	if (!source.length)
		return null;
	const [since, until] = timed ? source[0].split(" ").map(Number) : [0, 0];
	const first = timed ? 1 : 0;
	const count = source.length - first;
	const made = {
		timed, since, until, count, threads: loadThreads(),
		time: new Float64Array(count), frame: new Int32Array(count), state: new Uint8Array(count),
		weight: new Float64Array(count), number: new Float64Array(count).fill(1), thread: new Int32Array(count),
	};
	let time = 0;

	for (let k = 0; k < count; k++) {
		const [number, frame, state, weight, thread = 0] = source[k + first].split(" ");

		if (timed) {
			time += Number(number);
			made.time[k] = time;
		} else {
			made.number[k] = Number(number);
		}
		/* The "[left out]" callee of a frame follows it directly in the list. */
		made.frame[k] = frame[0] === "-" ? recorded.places[-Number(frame)] + 1 : recorded.places[Number(frame)];
		made.state[k] = STATES.indexOf(state);
		made.weight[k] = Number(weight);
		made.thread[k] = Number(thread);
	}
	return made;
}

const taken = loadSamples();
const moments = taken && taken.timed ? taken : null;

/* Give the frames the weight of only those samples for whose number counts() is true. */
function weighFrames(counts) {
	for (const numbers of [recorded.own, recorded.total, recorded.ownSamples, recorded.samples, recorded.states])
		numbers.fill(0);
	for (let k = 0; k < taken.count; k++) {
		if (!counts(k))
			continue;
		addState(recorded, taken.frame[k], taken.state[k], taken.weight[k]);
		recorded.ownSamples[taken.frame[k]] += taken.number[k];
	}
	sumTotals(recorded);
}

/* -- Sums of all frames -- */

/*
 * The share, in the whole recording or of stacks with the focus, of those with a
 * matching frame. A tree may hold less: an inverted one leaves out the callers of
 * small nodes. matches has a number for each label, 0 for no match.
 */
function shareOf(byLine, side, matches, focus = -1) {
	const matched = matchedFrames(byLine, matches);
	const within = focus >= 0 && matchedFrames(false, recorded.functions.map((f, i) => i === focus));
	let part = 0, whole = 0;

	for (let i = 0; i < recorded.count; i++) {
		if ((!within || within[i]) && recorded.side[i] === side) {
			whole += recorded.own[i];
			part += matched[i] * recorded.own[i];
		}
	}
	return whole ? part / whole : 0;
}

/* For each frame: 1 if it or one of its callers matches. */
function matchedFrames(byLine, matches) {
	const labels = byLine ? recorded.line : recorded.function;
	const matched = new Uint8Array(recorded.count);

	for (let i = 0; i < recorded.count; i++) {
		const caller = recorded.caller[i];

		matched[i] = matches[labels[i]] || caller >= 0 && matched[caller] ? 1 : 0;
	}
	return matched;
}

/* The function whose own weight a frame's is: what was allocated is its allocator's own. */
function countedFor(i) {
	const caller = recorded.caller[i];
	const isAllocated = recorded.functions[recorded.function[i]].look === "m" && recorded.caller[caller] >= 0;

	return recorded.function[isAllocated ? caller : i];
}

/* The own and total weight of each function; recursion counts once. */
function weighFunctions(side) {
	const count = recorded.functions.length;
	const own = new Float64Array(count), total = new Float64Array(count);
	const open = new Int32Array(count);	/* how often each function is in the path */
	const path = [];

	for (let i = 0; i < recorded.count; i++) {
		const f = recorded.function[i];

		while (path.length && path[path.length - 1] !== recorded.caller[i])
			open[recorded.function[path.pop()]]--;
		path.push(i);
		if (recorded.side[i] === side && recorded.caller[i] >= 0) {
			own[countedFor(i)] += recorded.own[i];
			if (!open[f])
				total[f] += recorded.total[i];
		}
		open[f]++;
	}
	return { own, total };
}
