# SPDX-License-Identifier: MIT
"""The Memory panel of Chrome's DevTools: its own code, in a headless Chromium, reads snapshots."""

PAGE = "devtools://devtools/bundled/devtools_app.html"
WORKER = "devtools://devtools/bundled/entrypoints/heap_snapshot_worker/heap_snapshot_worker.js"

# What the panel's worker does with a file. window.snapshots keeps what it made of each.
LOAD = """
const [worker, text, done] = arguments;
(async () => {
	const { HeapSnapshotLoader, HeapSnapshot } = await import(worker);
	const loader = new HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent() {} });
	const channel = new MessageChannel();
	new HeapSnapshot.SecondaryInitManager(channel.port2);
	loader.write(text);
	loader.close();
	const snapshot = await loader.buildSnapshot(channel.port1);
	(window.snapshots ||= []).push(snapshot);
	return snapshots.length - 1;
})().then(done, (error) => done("failed: " + error.stack));
"""
CLASSES = """
const aggregates = snapshots[arguments[0]].aggregatesWithFilter({});
return Object.values(aggregates).map(({ name, count, self, maxRet }) => [name, count, self, maxRet]);
"""
STATISTICS = "return snapshots[arguments[0]].getStatistics();"
RETAINERS = """
const [number, name] = arguments, snapshot = snapshots[number];
const aggregate = Object.values(snapshot.aggregatesWithFilter({})).find((a) => a.name === name);
const path = [];
for (let at = aggregate.idxs[0], i = 0; i < 20; i++) {
	const items = snapshot.createRetainingEdgesProvider(at).serializeItemsRange(0, 20).items;
	const nearest = items.sort((a, b) => a.node.distance - b.node.distance)[0];
	if (!nearest)
		break;
	path.push([nearest.name, nearest.node.name]);
	at = nearest.node.nodeIndex;
}
return path;
"""
# Like the panel's comparison: classes with how many objects are new and gone.
COMPARE = """
const [before, after] = [...arguments].slice(0, 2).map((number) => snapshots[number]);
const rows = after.calculateSnapshotDiff("before", before.aggregatesForDiff("[]"));
return Object.values(rows).map(({ name, addedCount, removedCount, countDelta, sizeDelta }) =>
	[name, addedCount, removedCount, countDelta, sizeDelta]);
"""


class DevTools:
    def __init__(self, driver):
        self.driver = driver
        driver.set_script_timeout(60)
        self.open()

    def open(self):
        self.driver.get(PAGE)

    def load(self, path):
        """The number of the snapshot in a file."""
        number = self.driver.execute_async_script(LOAD, WORKER, path.read_text(encoding="utf-8"))
        assert isinstance(number, int), number
        return number

    def classes(self, number):
        """By name: how many objects, their bytes, and the most that one retains."""
        return {name: (count, own, retained)
                for name, count, own, retained in self.driver.execute_script(CLASSES, number)}

    def statistics(self, number):
        return self.driver.execute_script(STATISTICS, number)

    def retainers(self, number, name):
        """Of an object of a class, the shortest way to what the root holds: names of edges and of nodes."""
        return self.driver.execute_script(RETAINERS, number, name)

    def compare(self, before, after):
        """By class: objects that are new, that are gone, the difference of both, and of their bytes."""
        return {row[0]: row[1:] for row in self.driver.execute_script(COMPARE, before, after)}
