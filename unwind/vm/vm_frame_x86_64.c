/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_frame.h"

#include <string.h>

#include "unwind/lua/luajit.h"

/*
 * vm_x64.dasc and vm_x86.dasc, POSIX: `saveregs` pushes rbp, rbx, r15, r14
 * (with LUAJIT_NO_UNWIND also r13 and r12) and reserves room for the VM: slots_bytes().
 * The return address is at the frame's end, and the registers lie below it.
 */
enum {
	WORD = 8,
	FROM_END_RETURN = 8,
	FROM_END_RBP = 16,
	FROM_END_RBX = 24,
	FROM_END_R15 = 32,
	FROM_END_R14 = 40,
	FROM_END_R13 = 48,
	FROM_END_R12 = 56,
	TRACE_SPACE = 16,                /* BC_JLOOP makes room to save r12 and r13 */
	FFI_ARGUMENT_WORDS_MAX = 32 + 4, /* CCALL_MAXSTACK (lj_ccall.h), and alignment */
	LINKING_BYTES = 200,        /* from saveregs to beyond the store of L->cframe (vm_ffi_callback) */
	BRANCH_TO_FETCH_BYTES = 39, /* of BC_ISNEXT, from the branch to its last jump; BC_RETM comes next */
	JUMP_NEAR = 0xe9,
	JUMP_SHORT = 0xeb,
	MODRM_RBP_RDX = 0x55,
	MODRM_RDI_RDX = 0x57,
	MODRM_RCX_RDX = 0x51,
	NATIVE_STACK_MAX = 1 << 30, /* a program must request a larger stack explicitly */
	/*
	 * SAVE_NRES is a number of results, or a negative distance on the Lua stack, down to
	 * -2 * LUAI_MAXSTACK slots (lj_trace.c, lj_trace_exit()). Some builds have larger limits.
	 */
	NRESULTS_MAX = 1 << 24,
	CALL_SETUP_BYTES = 64, /* before a call: the code that sets up its operands */
};

/* push rbp; push rbx; push r15; push r14; sub rsp, slots_bytes() */
static const uint8_t saveregs[] = { 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0 };
/* add rsp, slots_bytes(); pop r14; pop r15; pop rbx; pop rbp; ret */
static const uint8_t restoreregs[] = { 0x48, 0x83, 0xc4, 0, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3 };

/* The VM's own part of its frame, in bytes: the link to the previous frame is its last word. */
static uint8_t slots_bytes(const struct layout *layout)
{
	return (uint8_t)(layout->CFRAME_PREV + WORD);
}

/* The offset of each of these instructions, and how many words are then pushed after the return address. */
struct transition {
	uint8_t offset;
	uint8_t words;
};

enum { TRANSITIONS_MAX = 5, ENTERS_FROM_STUB = 1 };

/* The code that enters or leaves the VM. */
static const struct passage {
	const uint8_t *code;
	size_t length, slots_at; /* the byte that is slots_bytes() */
	struct transition steps[TRANSITIONS_MAX];
	size_t step_count;
} passages[] = {
	{ saveregs, sizeof(saveregs), 9, { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 4, 3 }, { 6, 4 } }, 5 },
	/* vm_ffi_callback, whose stub has pushed rbp. */
	[ENTERS_FROM_STUB] = { saveregs + 1,
			       sizeof(saveregs) - 1,
			       8,
			       { { 0, 1 }, { 1, 2 }, { 3, 3 }, { 5, 4 } },
			       4 },
	{ restoreregs, sizeof(restoreregs), 3, { { 4, 4 }, { 6, 3 }, { 8, 2 }, { 9, 1 }, { 10, 0 } }, 5 },
};

struct vm_registers vm_registers(const struct registers *registers)
{
	return (struct vm_registers){
		.base = registers->rdx,
		.pc = registers->rbx,
		.kept_base = registers->rbp,
		.argument = registers->rdi,
	};
}

bool vm_registers_are_known(const struct registers *registers)
{
	return !(registers->unknown & (REGISTER_RBP | REGISTER_RBX));
}

bool vm_global_is_known(const struct registers *registers)
{
	return !(registers->unknown & REGISTER_R14);
}

uint64_t vm_global_of_registers(const struct layout *layout, const struct registers *registers)
{
	return registers->r14 - (uint64_t)layout->GG_dispatch;
}

size_t vm_frame_candidates(const struct layout *layout, const struct registers *registers,
			   uint64_t ret_cframes[VM_FRAME_CANDIDATES_MAX])
{
	uint64_t sp = registers->sp;
	size_t count = 0;

	ret_cframes[count++] = sp;
	ret_cframes[count++] = sp + WORD;        /* in a subroutine of the VM */
	ret_cframes[count++] = sp + TRACE_SPACE; /* BC_JLOOP, about to enter a trace */
	/* restoreregs has popped some words, but not yet the return address. */
	for (int32_t popped = slots_bytes(layout); popped < layout->CFRAME_size; popped += WORD)
		ret_cframes[count++] = sp - (uint64_t)popped;
	return count;
}

static bool load(struct memory *stack, uint64_t address, unsigned size, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (memory_read(stack, address, &value, size) != MEMORY_OK)
		return false;
	*ret_value = value;
	return true;
}

bool vm_frame_thread(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t *ret_thread)
{
	return load(stack, cframe + (uint64_t)layout->CFRAME_L, layout_ref_size(layout), ret_thread);
}

bool vm_frame_pc(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t *ret_pc)
{
	return load(stack, cframe + (uint64_t)layout->CFRAME_PC, layout_ref_size(layout), ret_pc);
}

bool vm_frame_previous(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       uint64_t *ret_cframe)
{
	uint64_t previous;

	if (!load(stack, cframe + (uint64_t)layout->CFRAME_PREV, sizeof(previous), &previous))
		return false;
	*ret_cframe = previous & ~(uint64_t)CFRAME_FLAGS;
	return true;
}

bool vm_frame_nresults(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       int32_t *ret_nresults)
{
	uint64_t value;

	if (!load(stack, cframe + (uint64_t)layout->CFRAME_NRES, sizeof(int32_t), &value))
		return false;
	*ret_nresults = (int32_t)value;
	return true;
}

/* A C frame of the VM: in place if all of it is copied, else read word by word. */
struct frame_words {
	struct memory *stack;
	uint64_t cframe;
	const uint8_t *bytes; /* from the first word on, or NULL */
	int32_t size;
};

static struct frame_words frame_words(const struct layout *layout, struct memory *stack, uint64_t cframe)
{
	return (struct frame_words){
		.stack = stack,
		.cframe = cframe,
		.bytes = memory_view(stack, cframe, (size_t)layout->CFRAME_size),
		.size = layout->CFRAME_size,
	};
}

static bool load_word(const struct frame_words *words, int32_t offset, unsigned size, uint64_t *ret_value)
{
	if (!words->bytes || offset < 0 || offset > words->size - (int32_t)size)
		return load(words->stack, words->cframe + (uint64_t)offset, size, ret_value);
	*ret_value = load_bytes(words->bytes, offset, size);
	return true;
}

/* The same, by its distance from the frame's end. */
static bool load_saved_word(const struct frame_words *words, int32_t from_end, uint64_t *ret_value)
{
	return load_word(words, words->size - from_end, WORD, ret_value);
}

bool vm_frame_is_plausible(const struct image *image, const struct layout *layout, struct memory *stack,
			   uint64_t cframe, uint64_t *ret_thread)
{
	const struct frame_words words = frame_words(layout, stack, cframe);
	uint64_t thread, return_address, previous, nresults;

	/* Each word rules out most words that are left; a hold tries a dozen. */
	if (!load_word(&words, layout->CFRAME_PREV, WORD, &previous))
		return false;
	previous &= ~(uint64_t)CFRAME_FLAGS;
	if ((previous != 0 && (previous <= cframe || previous - cframe > NATIVE_STACK_MAX)) ||
	    !load_word(&words, layout->CFRAME_NRES, sizeof(int32_t), &nresults) ||
	    (int32_t)nresults < -NRESULTS_MAX || (int32_t)nresults > NRESULTS_MAX ||
	    !load_word(&words, layout->CFRAME_L, layout_ref_size(layout), &thread) ||
	    !may_be_object(layout->gc64, thread) ||
	    !load_saved_word(&words, FROM_END_RETURN, &return_address) || !image_find(image, return_address))
		return false;
	*ret_thread = thread;
	return true;
}

bool vm_frame_caller(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     const struct registers *frame, bool on_trace, struct registers *ret_caller)
{
	const struct frame_words words = frame_words(layout, stack, cframe);
	struct registers caller = *frame;

	caller.unknown |= REGISTER_OTHERS;
	caller.unknown &= ~(unsigned int)(REGISTER_RBP | REGISTER_RBX | REGISTER_R14 | REGISTER_R15);
	if (!load_saved_word(&words, FROM_END_RETURN, &caller.pc) ||
	    !load_saved_word(&words, FROM_END_RBP, &caller.rbp) ||
	    !load_saved_word(&words, FROM_END_RBX, &caller.rbx) ||
	    !load_saved_word(&words, FROM_END_R15, &caller.r15) ||
	    !load_saved_word(&words, FROM_END_R14, &caller.r14))
		return false;
	if (layout->CFRAME_size > slots_bytes(layout) + FROM_END_R14) {
		if (!load_saved_word(&words, FROM_END_R13, &caller.r13) ||
		    !load_saved_word(&words, FROM_END_R12, &caller.r12))
			return false;
	} else if (on_trace) {
		/* BC_JLOOP saves r12 at the cframe; r13 one word below it, or one above it without GC64. */
		if (!load(stack, cframe, WORD, &caller.r12) ||
		    !load(stack, layout->gc64 ? cframe - WORD : cframe + WORD, WORD, &caller.r13))
			return false;
		caller.unknown &= ~(unsigned int)(REGISTER_R12 | REGISTER_R13);
	}
	caller.sp = cframe + (uint64_t)layout->CFRAME_size;
	*ret_caller = caller;
	return true;
}

bool vm_frame_called(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t from,
		     uint64_t sp, uint64_t *ret_return)
{
	(void)layout;
	(void)cframe;
	(void)from;
	return load(stack, sp - WORD, WORD, ret_return);
}

/* Load the saved registers, outermost first, and the return address. Set rsp to the caller's. */
static bool load_saved(struct memory *stack, struct registers *caller, uint64_t sp, unsigned words)
{
	uint64_t *saved[] = { &caller->rbp, &caller->rbx, &caller->r15, &caller->r14 };

	for (unsigned i = 0; i < words; i++)
		if (!load(stack, sp + (words - 1 - i) * WORD, WORD, saved[i]))
			return false;
	if (!load(stack, sp + words * WORD, WORD, &caller->pc))
		return false;
	caller->sp = sp + (words + 1) * WORD;
	return true;
}

/* As the code is in a VM with this layout. Returns its length. */
static size_t passage_code(const struct layout *layout, const struct passage *passage,
			   uint8_t ret_code[static sizeof(restoreregs)])
{
	memcpy(ret_code, passage->code, passage->length);
	ret_code[passage->slots_at] = slots_bytes(layout);
	return passage->length;
}

static bool find_transition(const struct layout *layout, struct memory *text, uint64_t pc,
			    const struct passage *passage, unsigned *ret_words)
{
	uint8_t code[sizeof(restoreregs)];
	size_t length = passage_code(layout, passage, code);

	for (size_t i = 0; i < passage->step_count; i++) {
		const struct transition *step = &passage->steps[i];
		uint8_t bytes[sizeof(restoreregs)];

		if (memory_read(text, pc - step->offset, bytes, length) != MEMORY_OK ||
		    memcmp(bytes, code, length) != 0)
			continue;
		*ret_words = step->words;
		return true;
	}
	return false;
}

/* Is pc in such code? ret_words is how many words are pushed there after the return address. */
static bool find_passage(const struct layout *layout, struct memory *text, uint64_t pc, unsigned *ret_words)
{
	for (size_t i = 0; i < sizeof(passages) / sizeof(passages[0]); i++)
		if (find_transition(layout, text, pc, &passages[i], ret_words))
			return true;
	return false;
}

bool vm_is_entering_or_leaving(const struct layout *layout, struct memory *text, struct memory *stack,
			       const struct registers *registers, struct registers *ret_caller)
{
	struct registers caller = *registers;
	unsigned words;

	if (!find_passage(layout, text, registers->pc, &words) ||
	    !load_saved(stack, &caller, registers->sp, words))
		return false;
	*ret_caller = caller;
	return true;
}

bool vm_is_entering_or_leaving_ffi_call(const struct vm_code *vm, struct memory *text, struct memory *stack,
					const struct registers *registers, struct registers *ret_caller)
{
	/* lj_vm_ffi_call begins with push rbp; mov rbp, rsp and ends with leave; ret. */
	const uint8_t ret = restoreregs[sizeof(restoreregs) - 1];
	struct registers caller = *registers;
	bool has_pushed = registers->pc == vm->ffi_call + 1;
	uint8_t instruction;

	if (memory_read(text, registers->pc, &instruction, 1) != MEMORY_OK ||
	    (registers->pc != vm->ffi_call && !has_pushed && instruction != ret))
		return false;
	if (!load_saved(stack, &caller, registers->sp, has_pushed ? 1 : 0))
		return false;
	*ret_caller = caller;
	return true;
}

/* The target of the direct call before a return address. False if there is no such call. */
static bool called_function(struct memory *text, uint64_t return_address, uint64_t *ret_function)
{
	const uint8_t call_rel32 = 0xe8;
	uint8_t bytes[1 + sizeof(int32_t)];
	int32_t distance;

	if (memory_read(text, return_address - sizeof(bytes), bytes, sizeof(bytes)) != MEMORY_OK ||
	    bytes[0] != call_rel32)
		return false;
	memcpy(&distance, bytes + 1, sizeof(distance));
	*ret_function = return_address + (uint64_t)(int64_t)distance;
	return true;
}

bool vm_find_ffi_caller(const struct vm_code *vm, struct memory *text, struct memory *stack,
			const struct registers *registers, struct registers *ret_caller)
{
	for (unsigned arguments = 0; arguments <= FFI_ARGUMENT_WORDS_MAX; arguments++) {
		struct registers caller = *registers;
		uint64_t function;

		/* push rbp; mov rbp, rsp; push rbx; sub rsp, CCallState.spadj */
		if (!load_saved(stack, &caller, registers->sp + arguments * WORD, 2))
			return false;
		if (!called_function(text, caller.pc, &function) || function != vm->ffi_call)
			continue;
		caller.unknown &= ~(unsigned int)(REGISTER_RBP | REGISTER_RBX);
		*ret_caller = caller;
		return true;
	}
	return false;
}

bool vm_is_about_to_land(struct memory *text, const struct registers *registers,
			 struct registers *ret_registers)
{
	/* jmp rcx (__builtin_eh_return) */
	static const uint8_t jump[] = { 0xff, 0xe1 };
	uint8_t bytes[sizeof(jump)];

	if (memory_read(text, registers->pc, bytes, sizeof(bytes)) != MEMORY_OK ||
	    memcmp(bytes, jump, sizeof(jump)) != 0)
		return false;
	*ret_registers = *registers;
	ret_registers->pc = registers->rcx;
	return true;
}

bool vm_is_linking(struct memory *text, const struct vm_code *vm, uint64_t pc)
{
	uint8_t bytes[LINKING_BYTES + sizeof(saveregs)], code[sizeof(restoreregs)];
	uint64_t begin = pc - LINKING_BYTES > vm->begin ? pc - LINKING_BYTES : vm->begin;
	size_t length = (size_t)(pc - begin);
	size_t code_length = passage_code(&vm->layout, &passages[ENTERS_FROM_STUB], code);

	return memory_read(text, begin, bytes, length) == MEMORY_OK &&
	       memmem(bytes, length, code, code_length) != NULL;
}

bool vm_calls_to_link(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && vm_is_linking(text, vm, return_address);
}

bool vm_is_store_pending(const struct layout *layout, struct memory *text, uint64_t pc)
{
	static const uint8_t gc64[] = { 0x48, 0x89, 0x5a, 0xf8 }; /* mov [rdx-8], rbx */
	static const uint8_t gc32[] = { 0x89, 0x5a, 0xfc };       /* mov [edx-4], ebx */
	const uint8_t *pattern = layout->gc64 ? gc64 : gc32;
	size_t length = layout->gc64 ? sizeof(gc64) : sizeof(gc32);
	uint8_t bytes[sizeof(gc64)];

	return memory_read(text, pc, bytes, length) == MEMORY_OK && memcmp(bytes, pattern, length) == 0;
}

/*
 * Was a branch just taken, and nothing fetched since? BC_JFORI jumps first: then it
 * decides whether to enter the trace of the loop whose end is before PC. Comparisons,
 * and BC_ISNEXT once it is BC_JMP, jump to their fetch: what lies behind that jump does
 * not follow the branch.
 */
static bool has_branched(struct memory *text, uint64_t pc)
{
	/* lea rbx, [rbx+rax*4-BCBIAS_J*4] (GC32: ebx) */
	static const uint8_t branch[] = { 0x8d, 0x9c, 0x83, 0x00, 0x00, 0xfe, 0xff };
	static const uint8_t fetch[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc };
	/* movzx eax, word [rbx-2] (GC32: ebx) */
	static const uint8_t trace_of_loop[] = { 0x0f, 0xb7, 0x43, 0xfe };
	/* mov byte [rbx], BC_ITERC (GC32: ebx) */
	static const uint8_t despecialize[] = { 0xc6, 0x03 };
	enum { DESPECIALIZE_BYTES = sizeof(despecialize) + 1 };
	uint8_t bytes[BRANCH_TO_FETCH_BYTES], next[sizeof(trace_of_loop)];
	const uint8_t *found;
	size_t distance, jump;

	if (memory_read(text, pc - sizeof(bytes), bytes, sizeof(bytes)) != MEMORY_OK)
		return false;
	found = memmem(bytes, sizeof(bytes), branch, sizeof(branch));
	if (!found || memmem(found, (size_t)(bytes + sizeof(bytes) - found), fetch, sizeof(fetch)))
		return false;
	distance = (size_t)(bytes + sizeof(bytes) - found) - sizeof(branch);
	if (memory_read(text, pc - distance, next, sizeof(next)) != MEMORY_OK)
		return false;
	jump = memcmp(next, despecialize, sizeof(despecialize)) == 0 ? DESPECIALIZE_BYTES : 0;
	if (next[jump] == JUMP_NEAR || next[jump] == JUMP_SHORT)
		return distance <= jump;
	return memcmp(next, trace_of_loop, sizeof(next)) != 0;
}

bool vm_is_before_next(const struct layout *layout, struct memory *text, uint64_t pc)
{
	/* mov eax, [rbx]; movzx ecx, ah; movzx ebp, al; add rbx, 4 (GC32: add ebx, 4) */
	static const uint8_t gc64[] = {
		0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f, 0xb6, 0xe8, 0x48, 0x83, 0xc3, 0x04
	};
	static const uint8_t gc32[] = { 0x8b, 0x03, 0x0f, 0xb6, 0xcc, 0x0f, 0xb6, 0xe8, 0x83, 0xc3, 0x04 };
	static const uint8_t instructions[] = { 0, 2, 5, 8 };
	const uint8_t *pattern = layout->gc64 ? gc64 : gc32;
	size_t length = layout->gc64 ? sizeof(gc64) : sizeof(gc32);

	for (size_t i = 0; i < sizeof(instructions); i++) {
		uint8_t bytes[sizeof(gc64)];

		if (memory_read(text, pc - instructions[i], bytes, length) == MEMORY_OK &&
		    memcmp(bytes, pattern, length) == 0)
			return true;
	}
	return has_branched(text, pc);
}

bool vm_jumps_before_call(struct memory *text, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && has_branched(text, return_address);
}

/* Do the distance bytes before this return address contain a store of BASE to L->base? */
static bool stores_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			uint64_t return_address, size_t distance, uint8_t operands)
{
	/* mov [reg+L.base], rdx (GC32: edx) */
	const uint8_t gc64[] = { 0x48, 0x89, operands, (uint8_t)layout->L_base };
	const uint8_t *pattern = layout->gc64 ? gc64 : gc64 + 1;
	size_t length = layout->gc64 ? sizeof(gc64) : sizeof(gc64) - 1;
	uint8_t bytes[CALL_SETUP_BYTES];
	uint64_t begin = return_address - distance;

	if (begin < vm->begin)
		begin = vm->begin;
	return memory_read(text, begin, bytes, (size_t)(return_address - begin)) == MEMORY_OK &&
	       memmem(bytes, (size_t)(return_address - begin), pattern, length) != NULL;
}

bool vm_call_stores_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			 uint64_t return_address)
{
	return stores_base(layout, text, vm, return_address, CALL_SETUP_BYTES, MODRM_RBP_RDX) ||
	       vm_call_moves_base(layout, text, vm, return_address);
}

bool vm_call_moves_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			uint64_t return_address)
{
	return stores_base(layout, text, vm, return_address, CALL_SETUP_BYTES / 2, MODRM_RDI_RDX);
}

bool vm_is_leaving_callback(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			    uint64_t return_address)
{
	return stores_base(layout, text, vm, return_address, CALL_SETUP_BYTES / 2, MODRM_RCX_RDX);
}

bool vm_is_called(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && function >= vm->begin &&
	       function < vm->end;
}

bool vm_is_exiting(const struct layout *layout, struct memory *text, uint64_t return_address)
{
	/* mov [DISPATCH+DISPATCH_GL(jit_base)], 0; builds that have jit_L clear that instead */
	uint8_t store[10] = { 0xc7, 0x86 }, bytes[CALL_SETUP_BYTES / 2];
	int32_t field = layout->g_jit_L == LAYOUT_ABSENT ? layout->g_jit_base : layout->g_jit_L;
	int32_t displacement = field - layout->GG_dispatch;

	memcpy(store + 2, &displacement, sizeof(displacement));
	return memory_read(text, return_address - sizeof(bytes), bytes, sizeof(bytes)) == MEMORY_OK &&
	       memmem(bytes, sizeof(bytes), store, sizeof(store)) != NULL;
}

/* vm_exit_handler: mov RAd, [DISPATCH+DISPATCH_GL(vmstate)] */
uint32_t vm_exit_trace(struct snapshot *snapshot, const struct registers *registers)
{
	(void)snapshot;
	return (uint32_t)registers->rcx;
}

/* The call pushed it. */
bool vm_may_return_to_trace(uint64_t at, uint64_t sp)
{
	return at == sp;
}

uint64_t vm_trace_cframe(const struct registers *registers, uint16_t spadjust)
{
	return registers->sp + TRACE_SPACE + spadjust;
}

uint64_t vm_trace_sp(uint64_t cframe, uint16_t spadjust)
{
	return cframe - spadjust - TRACE_SPACE;
}
