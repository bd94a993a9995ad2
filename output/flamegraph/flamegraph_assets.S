/* SPDX-License-Identifier: MIT */
/*
 * The script and style sheet of the flame graph, from their files. The parts
 * of the script form one function, so that it adds no global name to the page.
 */
	.section .rodata

	.globl flamegraph_js, flamegraph_js_end
flamegraph_js:
	.ascii "(function () {\n\"use strict\";\n"
	.incbin "output/flamegraph/data.js"
	.incbin "output/flamegraph/tree.js"
	.incbin "output/flamegraph/chart.js"
	.incbin "output/flamegraph/view.js"
	.incbin "output/flamegraph/label.js"
	.incbin "output/flamegraph/picture.js"
	.incbin "output/flamegraph/heatmap.js"
	.incbin "output/flamegraph/minimap.js"
	.incbin "output/flamegraph/cpu.js"
	.incbin "output/flamegraph/hottest.js"
	.incbin "output/flamegraph/source.js"
	.incbin "output/flamegraph/card.js"
	.incbin "output/flamegraph/keys.js"
	.incbin "output/flamegraph/page.js"
	.ascii "})();\n"
flamegraph_js_end:

	.globl flamegraph_css, flamegraph_css_end
flamegraph_css:
	.incbin "output/flamegraph/flamegraph.css"
flamegraph_css_end:

	.section .note.GNU-stack, "", @progbits
