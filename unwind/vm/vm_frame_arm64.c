/* SPDX-License-Identifier: MIT */
#include "unwind/vm/vm_frame.h"

#include <string.h>

#include "unwind/lua/luajit.h"
#include "unwind/native/vm_decoder_arm64.h"

/* LuaJIT's registers (vm_arm64.dasc): BASE, PC, GL, L; RB is a caller's base. */
enum { X_BASE = 19, X_PC = 21, X_GL = 22, X_L = 23, ZERO = 31, LAST_SAVED = 28 };

enum {
	WORD = 8,
	TRACE_SPACE = 16, /* BC_JLOOP: sub sp, sp, #16 */
	/*
	 * `saveregs`, with CFRAME_SPACE: since September 2021 (421c4c79) the saved registers lie above the
	 * slots.
	 */
	NEW_FP = 192,
	NEW_LAST = 112, /* x28; x27 above it, and so on */
	OLD_FP = 0,
	OLD_FIRST = 16,     /* x19; x20 above it */
	LINKING_WORDS = 50, /* from saveregs to beyond the store of L->cframe (vm_ffi_callback) */
	SAVING_WORDS_MAX = 12,
	CALL_SETUP_WORDS = 16, /* before a call: the code that sets up its operands */
	BRANCH_TO_FETCH_WORDS = 6,
	FFI_FRAME = 32,
	NATIVE_STACK_MAX = 1 << 30, /* a program must request a larger stack explicitly */
	NRESULTS_MAX = 1 << 24,     /* as on x86-64 */
	RECORDS_BYTES_MAX = 64 << 10,
};

enum {
	SUB_SP_FRAME = (int)0xd10343ff,  /* sub sp, sp, #208: begins saveregs */
	STP_FP_LR_PRE = (int)0xa9b37bfd, /* stp x29, x30, [sp, #-208]!: the same, until 2021 */
	ADD_SP_FRAME = (int)0x910343ff,  /* add sp, sp, #208: ends restoreregs */
	LDP_FP_LR_POST = (int)0xa8cd7bfd,
	LDP_FFI_POST = (int)0xa8c24ff4, /* ldp x20, x19, [sp], #32: ends lj_vm_ffi_call */
	STORE_LINK = (int)0xf81f8275,   /* str PC, [BASE, #-8] */
	FETCH = (int)0xb84046b0,        /* ldr INSw, [PC], #4 */
	BRANCH_REGISTER = (int)0xd61f0000,
	RETURN = (int)0xd65f03c0,
};

static bool is_old(const struct layout *layout)
{
	return layout->CFRAME_PREV != 0;
}

static uint64_t saved_fp(const struct layout *layout, uint64_t cframe)
{
	return cframe + (is_old(layout) ? OLD_FP : NEW_FP);
}

static uint64_t saved_register(const struct layout *layout, uint64_t cframe, unsigned int number)
{
	return is_old(layout) ? cframe + OLD_FIRST + (number - REGISTER_X19) * WORD
			      : cframe + NEW_LAST + (LAST_SAVED - number) * WORD;
}

/*---- Registers ----*/

static unsigned int set_of(unsigned int number)
{
	return registers_set_of((int)number);
}

struct vm_registers vm_registers(const struct registers *registers)
{
	return (struct vm_registers){
		.base = registers->x[X_BASE],
		.pc = registers->x[X_PC],
		.kept_base = registers->x[X_BASE],
		.argument = registers->x[REGISTER_X0],
	};
}

bool vm_registers_are_known(const struct registers *registers)
{
	return !(registers->unknown & (set_of(X_BASE) | set_of(X_PC)));
}

bool vm_global_is_known(const struct registers *registers)
{
	return !(registers->unknown & set_of(X_GL));
}

uint64_t vm_global_of_registers(const struct layout *layout, const struct registers *registers)
{
	(void)layout;
	return registers->x[X_GL];
}

size_t vm_frame_candidates(const struct layout *layout, const struct registers *registers,
			   uint64_t ret_cframes[VM_FRAME_CANDIDATES_MAX])
{
	uint64_t sp = registers->sp;
	size_t count = 0;

	ret_cframes[count++] = sp;
	ret_cframes[count++] = sp + TRACE_SPACE; /* BC_JLOOP, about to enter a trace */
	/* vm_exit_interp, which a trace without spilled values has jumped to */
	ret_cframes[count++] = sp + 2 * TRACE_SPACE;
	/* restoreregs has popped the frame. */
	ret_cframes[count++] = sp - (uint64_t)layout->CFRAME_size;
	return count;
}

/*---- The C frame ----*/

static bool load(struct memory *stack, uint64_t address, uint64_t *ret_value)
{
	return memory_u64(stack, address, ret_value);
}

bool vm_frame_thread(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t *ret_thread)
{
	return load(stack, cframe + (uint64_t)layout->CFRAME_L, ret_thread);
}

bool vm_frame_pc(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t *ret_pc)
{
	return load(stack, cframe + (uint64_t)layout->CFRAME_PC, ret_pc);
}

bool vm_frame_previous(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       uint64_t *ret_cframe)
{
	uint64_t previous;

	if (!load(stack, cframe + (uint64_t)layout->CFRAME_PREV, &previous))
		return false;
	*ret_cframe = previous & ~(uint64_t)CFRAME_FLAGS;
	return true;
}

bool vm_frame_nresults(const struct layout *layout, struct memory *stack, uint64_t cframe,
		       int32_t *ret_nresults)
{
	uint32_t value;

	if (!memory_u32(stack, cframe + (uint64_t)layout->CFRAME_NRES, &value))
		return false;
	*ret_nresults = (int32_t)value;
	return true;
}

/* Return addresses in frames of the VM: its own code does not sign them, but that of others may. */
static uint64_t plain(uint64_t address)
{
	const struct registers unknown = { .pc = 0 };

	return registers_code_address(&unknown, address);
}

bool vm_frame_is_plausible(const struct image *image, const struct layout *layout, struct memory *stack,
			   uint64_t cframe, uint64_t *ret_thread)
{
	uint64_t thread, return_address, previous;
	int32_t nresults;

	if (!vm_frame_thread(layout, stack, cframe, &thread) ||
	    !vm_frame_previous(layout, stack, cframe, &previous) ||
	    !load(stack, saved_fp(layout, cframe) + WORD, &return_address))
		return false;
	if (!may_be_object(layout->gc64, thread) || !vm_frame_nresults(layout, stack, cframe, &nresults) ||
	    nresults < -NRESULTS_MAX || nresults > NRESULTS_MAX ||
	    (previous != 0 && (previous <= cframe || previous - cframe > NATIVE_STACK_MAX)))
		return false;
	if (!image_find(image, plain(return_address)))
		return false;
	*ret_thread = thread;
	return true;
}

bool vm_frame_caller(const struct layout *layout, struct memory *stack, uint64_t cframe,
		     const struct registers *frame, bool on_trace, struct registers *ret_caller)
{
	struct registers caller = *frame;

	(void)on_trace; /* saveregs has saved all registers that a trace uses */
	if (!load(stack, saved_fp(layout, cframe), &caller.x[REGISTER_FP]) ||
	    !load(stack, saved_fp(layout, cframe) + WORD, &caller.pc))
		return false;
	for (unsigned int number = REGISTER_X19; number <= LAST_SAVED; number++)
		if (!load(stack, saved_register(layout, cframe, number), &caller.x[number]))
			return false;
	caller.pc = registers_code_address(frame, caller.pc);
	caller.sp = cframe + (uint64_t)layout->CFRAME_size;
	caller.unknown = REGISTER_OTHERS;
	*ret_caller = caller;
	return true;
}

bool vm_frame_called(const struct layout *layout, struct memory *stack, uint64_t cframe, uint64_t from,
		     uint64_t sp, uint64_t *ret_return)
{
	uint64_t record, address, found = 0, lowest = cframe - RECORDS_BYTES_MAX;

	(void)sp;
	/* The called function saves the VM's frame pointer, and the return address above it. */
	for (uint64_t at = cframe - 2 * WORD; at >= from && at >= lowest && at < cframe; at -= WORD) {
		if (!load(stack, at, &record))
			break;
		if (record != saved_fp(layout, cframe) || !load(stack, at + WORD, &address))
			continue;
		address = plain(address);
		/* Words of older calls may lie there, too. */
		if (found && found != address)
			return false;
		found = address;
	}
	if (found)
		*ret_return = found;
	return found != 0;
}

/*---- Ways in and out ----*/

static bool fetch(struct memory *text, uint64_t pc, uint32_t *ret_word)
{
	return memory_u32(text, pc, ret_word);
}

static bool is_word(struct memory *text, uint64_t pc, int word)
{
	uint32_t found;

	return fetch(text, pc, &found) && found == (uint32_t)word;
}

/* How many instructions of saveregs have run at pc; 0 if it is not in there. */
static unsigned int saving_at(struct memory *text, uint64_t pc, bool old)
{
	for (unsigned int i = 1; i < SAVING_WORDS_MAX - (old ? 1 : 0); i++)
		if (is_word(text, pc - i * INSTRUCTION_BYTES, old ? STP_FP_LR_PRE : SUB_SP_FRAME))
			return i;
	return 0;
}

/* Does the pc stand in restoreregs, before the frame is popped? */
static bool is_restoring(struct memory *text, uint64_t pc, bool old)
{
	uint32_t word;

	for (unsigned int i = 0; i < SAVING_WORDS_MAX && fetch(text, pc + i * INSTRUCTION_BYTES, &word);
	     i++) {
		if (word == (uint32_t)(old ? LDP_FP_LR_POST : ADD_SP_FRAME))
			return true;
		if (!is_pair(word) || !bits_of(word, 22, 1) || rn_of(word) != ZERO)
			return false;
	}
	return false;
}

bool vm_is_entering_or_leaving(const struct layout *layout, struct memory *text, struct memory *stack,
			       const struct registers *registers, struct registers *ret_caller)
{
	const bool old = is_old(layout);
	struct registers caller = *registers;
	uint64_t pc = registers->pc;
	unsigned int saving = saving_at(text, pc, old);

	caller.pc = registers_code_address(registers, registers->x[REGISTER_LR]);
	if (saving) {
		caller.sp += (uint64_t)layout->CFRAME_size;
		if (saving >= 2 && !load(stack, saved_fp(layout, registers->sp), &caller.x[REGISTER_FP]))
			return false;
	} else if (is_restoring(text, pc, old)) {
		if (!vm_frame_caller(layout, stack, registers->sp, registers, false, &caller))
			return false;
	} else if (!is_word(text, pc, old ? STP_FP_LR_PRE : SUB_SP_FRAME) &&
		   !(is_word(text, pc, RETURN) &&
		     is_word(text, pc - INSTRUCTION_BYTES, old ? LDP_FP_LR_POST : ADD_SP_FRAME))) {
		return false;
	}
	*ret_caller = caller;
	return true;
}

/* lj_vm_ffi_call: stp x20, x19, [sp, #-32]!; stp fp, lr, [sp, #16]; add fp, sp, #16; mov x19, x0 */
bool vm_is_entering_or_leaving_ffi_call(const struct vm_code *vm, struct memory *text, struct memory *stack,
					const struct registers *registers, struct registers *ret_caller)
{
	struct registers caller = *registers;
	uint64_t begin = vm->ffi_call, pc = registers->pc;
	uint32_t word;

	if (fetch(text, begin, &word) && is_hint(word))
		begin += INSTRUCTION_BYTES;
	caller.pc = registers_code_address(registers, registers->x[REGISTER_LR]);
	if (pc == begin + INSTRUCTION_BYTES || pc == begin + 2 * INSTRUCTION_BYTES) {
		caller.sp += FFI_FRAME;
	} else if (is_word(text, pc, LDP_FFI_POST)) {
		if (!load(stack, registers->sp, &caller.x[X_BASE + 1]) ||
		    !load(stack, registers->sp + WORD, &caller.x[X_BASE]))
			return false;
		caller.sp += FFI_FRAME;
	} else if (pc > begin && !is_word(text, pc, RETURN)) {
		return false;
	}
	*ret_caller = caller;
	return true;
}

/* Its frame pointer is known wherever its caller's registers are. */
bool vm_find_ffi_caller(const struct vm_code *vm, struct memory *text, struct memory *stack,
			const struct registers *registers, struct registers *ret_caller)
{
	(void)vm;
	(void)text;
	(void)stack;
	(void)registers;
	(void)ret_caller;
	return false;
}

/* __builtin_eh_return ends with a jump by a register. */
bool vm_is_about_to_land(struct memory *text, const struct registers *registers,
			 struct registers *ret_registers)
{
	uint32_t word;

	if (!fetch(text, registers->pc, &word) || (word & 0xfffffc1f) != (uint32_t)BRANCH_REGISTER ||
	    rn_of(word) == ZERO)
		return false;
	*ret_registers = *registers;
	ret_registers->pc = registers->x[rn_of(word)];
	return true;
}

bool vm_is_linking(struct memory *text, const struct vm_code *vm, uint64_t pc)
{
	const int begins = is_old(&vm->layout) ? STP_FP_LR_PRE : SUB_SP_FRAME;

	for (uint64_t at = pc - INSTRUCTION_BYTES;
	     at >= vm->begin && pc - at <= LINKING_WORDS * INSTRUCTION_BYTES; at -= INSTRUCTION_BYTES)
		if (is_word(text, at, begins))
			return true;
	return false;
}

/*---- Calls ----*/

/* The target of the direct call before a return address. False if there is no such call. */
static bool called_function(struct memory *text, uint64_t return_address, uint64_t *ret_function)
{
	struct vm_instruction call = { .address = return_address - INSTRUCTION_BYTES };

	if (!fetch(text, call.address, &call.word) || !is_call(call.word))
		return false;
	*ret_function = instruction_target(&call);
	return true;
}

static bool is_in_vm(const struct vm_code *vm, uint64_t address)
{
	return address >= vm->begin && address < vm->end;
}

bool vm_calls_to_link(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && vm_is_linking(text, vm, return_address);
}

bool vm_is_called(struct memory *text, const struct vm_code *vm, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && is_in_vm(vm, function);
}

/* A store of a 64-bit register, alone or as the first of two, to a field of what L or CARG1 points to. */
static bool stores_to_thread(uint32_t word, int32_t field, unsigned int *ret_register,
			     unsigned int *ret_second)
{
	bool is_single = has_bits(word, 0xffc00000, 0xf9000000);
	int64_t offset;

	if (!is_single && !has_bits(word, 0xffc00000, 0xa9000000))
		return false;
	offset = is_single ? (int64_t)bits_of(word, 10, 12) * WORD : signed_bits_of(word, 15, 7) * WORD;
	if (offset != field || (rn_of(word) != X_L && rn_of(word) != REGISTER_X0))
		return false;
	*ret_register = rd_of(word);
	*ret_second = is_single ? (unsigned int)ZERO : rt2_of(word);
	return true;
}

/* The last store to L->base in the code before a call that returns here. False if there is none. */
static bool find_base_store(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			    uint64_t return_address, unsigned int *ret_register, unsigned int *ret_second)
{
	uint64_t at = return_address - 2 * INSTRUCTION_BYTES;

	for (unsigned int i = 0; i < CALL_SETUP_WORDS && at >= vm->begin; i++, at -= INSTRUCTION_BYTES) {
		uint32_t word;

		/* What comes before a jump or another call belongs to something else. */
		if (!fetch(text, at, &word) || is_branch(word) || is_call(word) || is_call_register(word) ||
		    is_return(word) || (word & 0xfffffc1f) == (uint32_t)BRANCH_REGISTER)
			return false;
		if (stores_to_thread(word, layout->L_base, ret_register, ret_second))
			return true;
	}
	return false;
}

/*
 * Is it a call of lj_vm_resume()? Of what begins with saveregs, the VM calls nothing else of its own.
 * Functions in C with a frame as large begin like that, too.
 */
static bool calls_resume(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			 uint64_t return_address)
{
	uint64_t function;
	uint32_t word;

	if (!called_function(text, return_address, &function) || !is_in_vm(vm, function))
		return false;
	if (fetch(text, function, &word) && is_hint(word))
		function += INSTRUCTION_BYTES;
	return is_word(text, function, is_old(layout) ? STP_FP_LR_PRE : SUB_SP_FRAME);
}

bool vm_call_stores_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			 uint64_t return_address)
{
	unsigned int number, second;

	return find_base_store(layout, text, vm, return_address, &number, &second) ||
	       calls_resume(layout, text, vm, return_address);
}

/*
 * vmeta_call stores the caller's base, which is in RB, and BASE is that of a frame which does not exist yet.
 * coroutine.resume() stores its own, long before the call, and moves BASE on to what it hands over.
 */
bool vm_call_moves_base(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			uint64_t return_address)
{
	unsigned int number, second;

	return (find_base_store(layout, text, vm, return_address, &number, &second) && number != X_BASE) ||
	       calls_resume(layout, text, vm, return_address);
}

/* cont_ffi_callback: stp BASE, CARG4, L->base */
bool vm_is_leaving_callback(const struct layout *layout, struct memory *text, const struct vm_code *vm,
			    uint64_t return_address)
{
	enum { CARG4 = 3 };
	unsigned int number, second;

	return find_base_store(layout, text, vm, return_address, &number, &second) && number == X_BASE &&
	       second == CARG4;
}

/*---- Bytecode ----*/

bool vm_is_store_pending(const struct layout *layout, struct memory *text, uint64_t pc)
{
	(void)layout;
	return is_word(text, pc, STORE_LINK);
}

/* sub PC, target, #0x20000; or csel PC, target, PC, by the condition: comparisons and numeric loops */
static bool sets_pc(uint32_t word)
{
	return has_bits(word, 0xfffffc1f, 0xd1408015) || has_bits(word, 0xffff0c1f, 0x9a950015);
}

/* Was a branch just taken or not, and nothing fetched since? What lies behind a jump does not follow it. */
static bool has_branched(struct memory *text, uint64_t pc)
{
	uint32_t word;

	for (unsigned int i = 1; i <= BRANCH_TO_FETCH_WORDS; i++) {
		if (!fetch(text, pc - i * INSTRUCTION_BYTES, &word) || word == (uint32_t)FETCH ||
		    is_branch(word))
			return false;
		if (sets_pc(word))
			return true;
	}
	return false;
}

bool vm_is_before_next(const struct layout *layout, struct memory *text, uint64_t pc)
{
	(void)layout;
	if (is_word(text, pc, FETCH))
		return true;
	return has_branched(text, pc);
}

bool vm_jumps_before_call(struct memory *text, uint64_t return_address)
{
	uint64_t function;

	return called_function(text, return_address, &function) && has_branched(text, return_address);
}

/*---- Traces ----*/

/* vm_exit_handler: str xzr, GL->jit_base */
bool vm_is_exiting(const struct layout *layout, struct memory *text, uint64_t return_address)
{
	const uint32_t store = 0xf9000000 | (uint32_t)(layout->g_jit_base / WORD) << 10 | X_GL << 5 | ZERO;

	for (unsigned int i = 2; i < CALL_SETUP_WORDS / 2; i++)
		if (is_word(text, return_address - i * INSTRUCTION_BYTES, (int)store))
			return true;
	return false;
}

/* vm_exit_handler: ldr CARG2w, [lr]. The stub has there: movz w0, the trace's number. */
uint32_t vm_exit_trace(struct snapshot *snapshot, const struct registers *registers)
{
	enum { MOVZ_W0 = 0x52800000 };
	struct memory_range range = { .address = registers->x[REGISTER_LR], .length = INSTRUCTION_BYTES };
	uint32_t word;

	if (registers->unknown & set_of(REGISTER_LR))
		return 0;
	snapshot_capture(snapshot, &range, 1);
	if (range.status != MEMORY_OK)
		return 0;
	memcpy(&word, range.copy, sizeof(word));
	return has_bits(word, 0xffe0001f, MOVZ_W0) ? bits_of(word, 5, 16) : 0;
}

/* The called function has stored it somewhere in its frame. */
bool vm_may_return_to_trace(uint64_t at, uint64_t sp)
{
	return at <= sp;
}

uint64_t vm_trace_cframe(const struct registers *registers, uint16_t spadjust)
{
	return registers->sp + TRACE_SPACE + spadjust;
}

uint64_t vm_trace_sp(uint64_t cframe, uint16_t spadjust)
{
	return cframe - spadjust - TRACE_SPACE;
}
