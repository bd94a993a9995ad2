// SPDX-License-Identifier: MIT
/*
 * The samples of one thread in order of time, as a tree whose starts and
 * weights are times in ns after the beginning: a flame chart. A sample shows
 * the time before it that it stands for; those taken at one time, such as what
 * a thread ran and its wait for a CPU, follow each other, and the last one ends
 * then. Neighbours with the same frames are one; a gap of less than half a
 * sample between them is closed. Where nothing is drawn, no sample stands for
 * the time.
 */

/* The samples of the thread, in order. */
function samplesOfThread(pid, tid) {
	const found = [];

	for (let k = 0; k < moments.count; k++) {
		const thread = moments.threads[moments.thread[k]];

		if (!thread || thread.pid === pid && thread.tid === tid)
			found.push(k);
	}
	return found;
}

/* When each of these samples ends, in ns: all taken at one time, but for the last one, where the next one begins. */
function endsOf(found) {
	const ends = new Float64Array(found.length);

	for (let at = found.length - 1; at >= 0; at--) {
		const time = moments.time[found[at]], next = found[at + 1];

		ends[at] = moments.time[next] === time ? ends[at + 1] - moments.weight[next] : time * 1000;
	}
	return ends;
}

/* The callers of a frame and itself, the outermost first, without the root. */
function pathTo(i) {
	const path = [];

	for (; i >= 0 && recorded.caller[i] >= 0; i = recorded.caller[i])
		path.push(i);
	return path.reverse();
}

function chartOf(byLine, pid, tid) {
	const tree = new GrowingTree(byLine, NOW, 4096);
	const found = samplesOfThread(pid, tid), ends = endsOf(found);
	const start = [moments.since * 1000], until = [moments.until * 1000];
	const open = [0];		/* the node of each depth that still goes on */
	let covered = start[0];		/* up to here, earlier samples stand for the time */

	for (const [at, k] of found.entries()) {
		const weight = moments.weight[k], end = ends[at];
		let begin = Math.max(covered, end - weight);
		let depth = 1;

		if (end <= begin)
			continue;
		if (begin - covered < weight / 2)
			begin = covered;
		if (tree.count >= NODES_MAX) {
			tree.cut = true;
			break;
		}
		let goesOn = begin === covered;

		for (const i of pathTo(moments.frame[k])) {
			goesOn &&= depth < open.length && tree.label[open[depth]] === tree.labelOf[i];
			if (!goesOn) {
				open.length = depth;
				open.push(tree.add(open[depth - 1], tree.labelOf[i]));
				start[open[depth]] = begin;
			}
			addTime(tree, open[depth], i, end - begin);
			until[open[depth++]] = end;
		}
		open.length = depth;
		tree.own[open[depth - 1]] += end - begin;
		tree.ownSamples[open[depth - 1]]++;
		for (const node of open)
			tree.states[node * STATES.length + moments.state[k]] += end - begin;
		tree.samplesNow[0]++;
		covered = end;
	}
	return finishedChart(tree, start, until);
}

/* The marks and number of samples of a node; its weight is set at the end. */
function addTime(tree, node, i, time) {
	const mark = recorded.mark[i];

	tree.samplesNow[node]++;
	if (mark & COMPILED)
		tree.compiled[node] += time;
	if (mark & NEAREST)
		tree.nearest[node] += time;
	if (mark & FUNCTION_ONLY)
		tree.functionOnly[node] += time;
}

function finishedChart(tree, start, until) {
	const made = arranged(tree, null, null);

	made.isChart = true;
	made.start.set(start);
	for (let i = 0; i < made.count; i++)
		made.total[NOW][i] = until[i] - start[i];
	return made;
}
