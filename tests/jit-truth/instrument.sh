#!/bin/sh
# SPDX-License-Identifier: MIT
# instrument.sh SOURCES: have a LuaJIT source tree say what its machine code was
# assembled from (lj_truth.h). Fails if a place to instrument is not found.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$1/src

# edit FILE SCRIPT: apply a sed script that must change the file.
edit() {
	cp "$src/$1" "$src/$1.orig"
	sed -i "$2" "$src/$1"
	! cmp -s "$src/$1" "$src/$1.orig" || { echo "$1 is not as expected" >&2; exit 1; }
}

cp "$here/lj_truth.h" "$here/lj_truth.c" "$src"
edit lj_iropt.h '/^static LJ_AINLINE IRRef lj_ir_nextins/,/^}/{
s/^static/#include "lj_truth.h"\n&/
s/^  return ref;/  lj_truth_recorded(J, ref);\n&/
}'
edit lj_record.c '/^void lj_record_ins/,/^}/s/^  pc = J->pc;/&\n  lj_truth_recording(J);/'
edit lj_opt_loop.c '/^  for (ins = REF_FIRST; ins < invar; ins++) {/,/^  }$/{
s/^    IRIns \*ir;/    lj_truth_copying(ins);\n&/
s/^  }$/&\n  lj_truth_copying(0);/
}
s/^  .*errcode = lj_vm_cpcall(.*cploop_opt);/&\n  lj_truth_copying(0);/'
edit lj_asm.c 's/^      asm_ir(as, ir);/&\n      lj_truth_assembled(as->curins, as->mcp);/
s/^      asm_tail_link(as);/      { asm_tail_link(as); lj_truth_tail(as->mcp); }/'
edit lj_trace.c '/^static void trace_save/,/^}/{
s/^static/#include "lj_truth.h"\n&/
s/^  lj_gdbjit_addtrace(J, T);/&\n  lj_truth_saved(J, T);/
}'
echo '#include "lj_truth.c"' >>"$src/lj_trace.c"
