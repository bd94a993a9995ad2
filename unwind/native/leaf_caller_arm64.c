/* SPDX-License-Identifier: MIT */
#include "unwind/native/leaf_caller.h"

#include <stdlib.h>
#include <string.h>

#include "luajit-layouts/module/elf_image.h"
#include "unwind/native/vm_decoder_arm64.h"

enum {
	LEAVES_MAX = 64, /* remembered; the oldest is forgotten */
	CALLS_MAX = 128, /* of one leaf */
	CHUNK = 64 << 10,
	MODULE_BYTES_MAX = 64 << 20, /* of a larger one, nothing is known */
	FFI_SETUP_WORDS = 32,        /* before lj_vm_ffi_call's call: the code that sets up its operands */
	WORD = sizeof(uint64_t),
	PAGE = 4096,
	REGISTERS_OF_CODE = 32,
};

/* A function and the return addresses of its calls; none if other things than calls refer to it. */
struct leaf_calls {
	uint64_t begin;
	uint64_t returns[CALLS_MAX];
	size_t count;
};

struct leaf_callers {
	struct leaf_calls leaves[LEAVES_MAX];
	size_t next;
};

void leaf_callers_free(struct leaf_callers *callers)
{
	free(callers);
}

/*---- What refers to a function ----*/

struct search {
	struct leaf_calls *calls;
	uint64_t begin, end; /* of the function */
	uint64_t bias;
	uint64_t pages[REGISTERS_OF_CODE]; /* what the last adrp has put into each register */
};

static bool is_direct_jump(uint32_t word)
{
	return is_branch(word) || is_conditional(word) || is_compare_branch(word) || is_test_branch(word);
}

/* adr and adrp: the address that they make. */
static uint64_t made_address(uint64_t pc, uint32_t word)
{
	bool is_page = bits_of(word, 31, 1);
	uint64_t distance = (uint64_t)(signed_bits_of(word, 5, 19) * 4) + bits_of(word, 29, 2);

	return is_page ? (pc & ~(uint64_t)(PAGE - 1)) + distance * PAGE : pc + distance;
}

/* Look at a word of code. False if it refers to the function in another way than by a call. */
static bool take_code(struct search *search, uint64_t pc, uint32_t word)
{
	const struct vm_instruction instruction = { .address = pc, .word = word };

	if (is_call(word) && instruction_target(&instruction) == search->begin) {
		if (search->calls->count == CALLS_MAX)
			return false;
		search->calls->returns[search->calls->count++] = pc + INSTRUCTION_BYTES;
	} else if (is_direct_jump(word)) {
		return instruction_target(&instruction) != search->begin ||
		       (pc >= search->begin && pc < search->end);
	} else if (has_bits(word, 0x1f000000, 0x10000000)) {
		search->pages[rd_of(word)] = made_address(pc, word);
		return search->pages[rd_of(word)] != search->begin;
	} else if (is_add_immediate(word)) {
		return search->pages[rn_of(word)] + (uint64_t)instruction_addend(word) != search->begin;
	}
	return true;
}

/* Look at a segment. Relocations, dynamic symbols and pointers hold the function's address in a word. */
static bool take_segment(struct search *search, struct memory *live, const struct elf_segment *segment,
			 uint8_t bytes[static CHUNK])
{
	if (segment->end - segment->begin > MODULE_BYTES_MAX)
		return false;
	for (uint64_t at = segment->begin / WORD * WORD; at < segment->end; at += CHUNK) {
		uint64_t left = segment->end - at, word;
		size_t length = left < CHUNK ? (size_t)left : CHUNK;
		uint32_t code;

		if (memory_read(live, at, bytes, length) != MEMORY_OK)
			return false;
		for (size_t i = 0; i + WORD <= length; i += WORD) {
			memcpy(&word, bytes + i, sizeof(word));
			if (word == search->begin || word == search->begin - search->bias)
				return false;
		}
		for (size_t i = 0; (segment->flags & PF_X) && i + INSTRUCTION_BYTES <= length;
		     i += INSTRUCTION_BYTES) {
			memcpy(&code, bytes + i, sizeof(code));
			if (!take_code(search, at + i, code))
				return false;
		}
	}
	return true;
}

static bool take_module(struct search *search, struct image *image, const struct module *module)
{
	struct elf_image file;
	uint8_t *bytes;
	bool taken = true;

	if (module->end - module->begin > MODULE_BYTES_MAX ||
	    elf_image_open(image_text(image), module->base, &file) != ELF_IMAGE_OK)
		return false;
	bytes = malloc(CHUNK);
	search->bias = file.bias;
	for (size_t i = 0; bytes && taken && i < file.segment_count; i++)
		taken = take_segment(search, image_live(image), &file.segments[i], bytes);
	free(bytes);
	return bytes && taken;
}

static const struct leaf_calls *find_calls(struct leaf_callers *callers, struct image *image, uint64_t pc)
{
	struct search search = { .begin = 0 };

	if (!image_function(image, pc, &search.begin, &search.end))
		return NULL;
	for (size_t i = 0; i < LEAVES_MAX; i++)
		if (callers->leaves[i].begin == search.begin)
			return &callers->leaves[i];
	search.calls = &callers->leaves[callers->next++ % LEAVES_MAX];
	*search.calls = (struct leaf_calls){ .begin = search.begin };
	if (!take_module(&search, image, image_find(image, pc)))
		search.calls->count = 0;
	return search.calls;
}

/*---- Who called whom ----*/

/* ldr x11, [x19] ... blr x11: lj_vm_ffi_call's function, from the C call's state (CCallState.func). */
static bool find_ffi_function(struct image *image, uint64_t call, uint32_t call_word, struct memory *stack,
			      const struct registers *caller, uint64_t *ret_function)
{
	uint32_t word;
	uint64_t base;

	for (unsigned int i = 1; i <= FFI_SETUP_WORDS; i++) {
		if (!memory_u32(image_text(image), call - i * INSTRUCTION_BYTES, &word))
			return false;
		if (!has_bits(word, 0xffc00000, 0xf9400000) || rd_of(word) != rn_of(call_word))
			continue;
		return registers_get(caller, (int)rn_of(word), &base) &&
		       memory_u64(stack, base + bits_of(word, 10, 12) * WORD, ret_function);
	}
	return false;
}

/* The call that returns to an address; false if there is none. Code that was made at run time may change. */
static bool find_call(struct image *image, uint64_t address, struct vm_instruction *ret_call)
{
	struct vm_instruction call = { .address = address - INSTRUCTION_BYTES };
	struct memory *code = image_is_made(image, call.address) ? image_live(image) : image_text(image);

	if (!memory_u32(code, call.address, &call.word) || !vm_instruction_is_call(&call))
		return false;
	*ret_call = call;
	return true;
}

/* Can what stands before the caller's pc have called a function? */
static enum code_leads may_have_called(struct image *image, struct cfi *cfi, struct memory *stack,
				       const struct registers *caller, uint64_t function)
{
	struct vm_instruction call;
	uint64_t target;

	if (!find_call(image, caller->pc, &call))
		return CODE_LEADS_NOT;
	if (is_call(call.word))
		return cfi_lead(cfi, instruction_target(&call), function);
	if (image_classify(image, call.address, NULL) != CODE_VM_FFI_CALL ||
	    !find_ffi_function(image, call.address, call.word, stack, caller, &target))
		return CODE_LEADS_PERHAPS;
	return cfi_lead(cfi, target, function);
}

/*
 * Does the caller's frame pointer lead to a frame record (AAPCS64, 6.4.6) with the return address of a call?
 */
static bool has_record(struct image *image, struct memory *stack, const struct registers *caller)
{
	struct vm_instruction call;
	uint64_t record, address;

	return registers_get(caller, REGISTER_FP, &record) && record >= caller->sp &&
	       memory_u64(stack, record + WORD, &address) &&
	       find_call(image, registers_code_address(caller, address), &call);
}

/*---- Answer ----*/

/* Are all registers that are known in the first the same in the second? */
static bool agrees(const struct registers *first, const struct registers *second)
{
	uint64_t value, other;

	for (int number = 0; number < REGISTER_NUMBERS; number++)
		if (registers_get(first, number, &value) &&
		    (!registers_get(second, number, &other) || value != other))
			return false;
	return true;
}

static bool have_same_symbols(struct symbols *symbols, uint64_t a, uint64_t b)
{
	struct symbol names[SYMBOL_INLINES_MAX], others[SYMBOL_INLINES_MAX];
	size_t count = symbols_find(symbols, a, names);

	if (symbols_find(symbols, b, others) != count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i].name, others[i].name) != 0 ||
		    strcmp(names[i].file, others[i].file) != 0 || names[i].line != others[i].line)
			return false;
	return true;
}

/* A call that the leaf may return to, and the registers of its function's caller. */
struct candidate {
	uint64_t pc, begin;
	struct registers next;
};

/*
 * Of two calls that the leaf may return to, choose the one after which less is known: a function saves some
 * registers only for a part of its calls. False if they contradict each other, or read otherwise.
 */
static bool choose(struct symbols *symbols, struct candidate *chosen, const struct candidate *other)
{
	if (chosen->pc != 0) {
		if (other->begin != chosen->begin ||
		    !have_same_symbols(symbols, chosen->pc - 1, other->pc - 1))
			return false;
		if (agrees(&chosen->next, &other->next))
			return true;
		if (!agrees(&other->next, &chosen->next))
			return false;
	}
	*chosen = *other;
	return true;
}

bool leaf_caller_find(struct leaf_callers **callers, struct image *image, struct cfi *cfi,
		      struct symbols *symbols, struct memory *stack, const struct registers *leaf,
		      struct registers *ret_caller)
{
	struct registers caller = *leaf;
	struct candidate chosen = { .pc = 0 }, other;
	bool all_judged = true, is_certain = true;
	const struct leaf_calls *calls;
	uint64_t end;

	if (!*callers)
		*callers = calloc(1, sizeof(**callers));
	calls = *callers ? find_calls(*callers, image, leaf->pc) : NULL;
	if (!calls || !cfi_caller_sp(cfi, leaf->pc, leaf, stack, &caller.sp))
		return false;
	for (size_t i = 0; i < calls->count; i++) {
		enum code_leads leads;
		enum cfi_status status;

		caller.pc = other.pc = calls->returns[i];
		status = cfi_step(cfi, caller.pc - 1, &caller, stack, &other.next);
		if (status == CFI_NONE || !image_function(image, caller.pc - 1, &other.begin, &end))
			return false;
		if (status == CFI_REGISTER_UNKNOWN) {
			all_judged = false;
			continue;
		}
		leads = may_have_called(image, cfi, stack, &other.next, other.begin);
		if (leads == CODE_LEADS_NOT)
			continue;
		if (!choose(symbols, &chosen, &other))
			return false;
		is_certain &= leads == CODE_LEADS || has_record(image, stack, &other.next);
	}
	caller.pc = chosen.pc;
	*ret_caller = caller;
	return chosen.pc != 0 && (all_judged || is_certain);
}
