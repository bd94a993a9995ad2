/* The script and style sheet of the flame graph, as they are in their files. */
	.section .rodata

	.globl flamegraph_js, flamegraph_js_end
flamegraph_js:
	.incbin "output/flamegraph.js"
flamegraph_js_end:

	.globl flamegraph_css, flamegraph_css_end
flamegraph_css:
	.incbin "output/flamegraph.css"
flamegraph_css_end:

	.section .note.GNU-stack, "", @progbits
