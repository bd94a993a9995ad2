/* SPDX-License-Identifier: MIT */
/* Code whose names are known in different ways; see test_names.py. */
#include "slow_jump.h"

#define OUT_OF_LINE __attribute__((noinline))
#define INLINE __attribute__((always_inline)) static inline

/* One line, wherever in the loop a look finds the thread. */
#define FOR_EVER(statement) \
	for (;;) \
	statement

static volatile double sink;

/* Goes on for ever. */
INLINE void inlined(void)
{
	FOR_EVER(sink += 1); /* in inlined */
}

/* Not exported. */
OUT_OF_LINE static void hidden(void)
{
	inlined(); /* in hidden */
	sink += 2;
}

void exported(void);
void exported(void)
{
	hidden(); /* in exported */
	sink += 3;
}

/* Called over and over through the procedure linkage table. */
void callee(void);
OUT_OF_LINE void callee(void)
{
	wait_a_little();
}

void calls_plt(void);
void calls_plt(void)
{
	for (;;) {
		forget_addresses();
		callee();
	}
}

void calls_cxx(void);
void calls_rust(void);
void cxx(void) __asm__("_ZN8profiler4workIiEEvPKc");
void rust(void) __asm__("_ZN8profiler4work17h0123456789abcdefE");

void cxx(void)
{
	inlined();
}

void rust(void)
{
	inlined();
}

void calls_cxx(void)
{
	cxx();
	sink += 4;
}

void calls_rust(void)
{
	rust();
	sink += 5;
}

/* Assembler with symbols that have no size: one with unwind tables, one without. */
__asm__(".text\n"
	".globl sizeless_covered\n"
	".type sizeless_covered, @function\n"
	"sizeless_covered:\n"
	"	.cfi_startproc\n"
	"1:	jmp 1b\n"
	"	.cfi_endproc\n"
	".globl sizeless\n"
	".type sizeless, @function\n"
	"sizeless:\n"
	"2:	jmp 2b\n"
	"	ret\n"
	/* And some without, one of which uses no stack and no register of its caller's. */
	".globl leaf\n"
	".type leaf, @function\n"
	"leaf:\n"
	"	mov %rsp, %rax\n"
	"3:	jmp 3b\n"
	"	ret\n"
	".size leaf, . - leaf\n"
	".globl pushes\n"
	".type pushes, @function\n"
	"pushes:\n"
	"	push %rbx\n"
	"4:	jmp 4b\n"
	"	pop %rbx\n"
	"	ret\n"
	".size pushes, . - pushes\n"
	".globl borrows\n"
	".type borrows, @function\n"
	"borrows:\n"
	"	mov %rbp, %r10\n"
	"	xor %ebp, %ebp\n"
	"5:	jmp 5b\n"
	"	mov %r10, %rbp\n"
	"	ret\n"
	".size borrows, . - borrows\n");
